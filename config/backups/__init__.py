"""Backups: one file with the database and the files of conversations, checked when it is made and when it is read.

The keys are not in it, on purpose: they open the secrets in the database and belong elsewhere.
"""

from config.backups.archive import BackupError, default_folder
from config.backups.making import BackupResult, make_backup
from config.backups.restore import RestoreResult, restore_backup

__all__ = [
    "BackupError",
    "BackupResult",
    "RestoreResult",
    "default_folder",
    "make_backup",
    "restore_backup",
]
