"""A workspace's settings as one YAML file that people keep in a repository, and the way back.

The file says how things are to be: rules, providers, servers, buds, alerts, streams, views and schedules, each under its name. What
it does not name stays as it is. Secrets are never written; they can be given, and stay where they are left out.
"""

from config.workspace_files.applying import AppliedChanges, ChecksMissing, apply_file, check_buds
from config.workspace_files.exporting import workspace_document, write_workspace
from config.workspace_files.providers import KeysUntested
from config.workspace_files.target import WorkspaceTarget
from config.workspace_files.variables import fill_variables

__all__ = [
    "AppliedChanges",
    "ChecksMissing",
    "KeysUntested",
    "WorkspaceTarget",
    "apply_file",
    "check_buds",
    "fill_variables",
    "workspace_document",
    "write_workspace",
]
