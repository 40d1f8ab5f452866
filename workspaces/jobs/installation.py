"""What is known of the installation's own running: its background jobs, who does them, and which versions ran.

None of it is a tenant's. Whoever runs a job writes it (`workspaces.jobs.job_runs`); the platform's owner reads it.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobFault(models.TextChoices):
    """Why a job failed. Texts of exceptions may quote addresses and values, so none is kept."""

    DATABASE = "database", _("The database did not answer, or refused.")
    DISK = "disk", _("A file could not be read or written.")
    NETWORK = "network", _("Another machine could not be reached.")
    TIME = "time", _("It took too long.")
    UNEXPECTED = "unexpected", _("Something unexpected happened.")


class BackgroundJob(models.Model):
    """The last runs of one job that runs by itself. One row for each job, whatever happens."""

    name = models.CharField(primary_key=True, max_length=200, help_text=_("As Celery has it."))
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, help_text=_("Of the last run that ended."))
    seconds = models.FloatField(null=True, help_text=_("How long that run took."))
    failed_at = models.DateTimeField(null=True, help_text=_("End of the last run that failed."))
    fault = models.CharField(max_length=10, blank=True, choices=JobFault.choices)
    error = models.CharField(max_length=100, blank=True, help_text=_("Kind of the exception."))
    failures = models.JSONField(
        default=dict, help_text=_("How many runs failed in each hour of the last day.")
    )

    def __str__(self) -> str:
        return self.name


class WorkerSeen(models.Model):
    """A worker that has run jobs lately. Rows of workers that are gone go after a day."""

    name = models.CharField(primary_key=True, max_length=200, help_text=_("As Celery has it."))
    since = models.DateTimeField(help_text=_("It has run jobs without a break from then on."))
    seen_at = models.DateTimeField()
    version = models.CharField(max_length=40)

    def __str__(self) -> str:
        return self.name


class InstalledVersion(models.Model):
    """A version of Trellis that brought this database to its tables. Only the newest ones are kept."""

    id = models.BigAutoField(primary_key=True)
    version = models.CharField(max_length=40)
    commit = models.CharField(max_length=64, blank=True, help_text=_("Empty: not known."))
    since = models.DateTimeField()

    def __str__(self) -> str:
        return self.version
