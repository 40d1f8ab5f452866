"""The state of the installation over REST, for the platform's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from chat import restore_confirmation
from config.doctor import FindingState, examine
from config.installation.jobs import JobState, read_jobs, run_now
from config.installation.storage import read_storage
from config.installation.versions import read_versions
from workspaces.api import PlatformViewSet, one_document
from workspaces.errors import Conflict
from workspaces.restore_detection import restored_at

if TYPE_CHECKING:
    from rest_framework.request import Request


class FindingOutput(serializers.Serializer[Any]):
    """How one part is."""

    part = serializers.CharField()
    state = serializers.ChoiceField([one.value for one in FindingState])
    text = serializers.CharField()
    advice = serializers.CharField(help_text="What to do. Empty: nothing has to be done.")


class StateOutput(serializers.Serializer[Any]):
    """What `manage.py doctor` finds on the machine that answers."""

    restored_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the database was found restored from a backup, until somebody confirms it. Null: nothing is to be"
        " confirmed.",
    )
    unwell = serializers.IntegerField(help_text="Parts that need your attention.")
    findings = FindingOutput(many=True)


class RestoreOutput(serializers.Serializer[Any]):
    """What came of a confirmation."""

    was_open = serializers.BooleanField(help_text="False: the restore was confirmed before.")


class StateViewSet(PlatformViewSet):
    """The installation itself: versions, settings, keys, storage, queues, seals and restores."""

    serializer_class = StateOutput
    pagination_class = None  # one document
    needs_person: ClassVar[Any] = frozenset({"confirm_restore"})

    @one_document(StateOutput, "platform_state_retrieve")
    def list(self, request: Request) -> Response:
        """Look at everything the installation stands on. Nothing of a key is told but whether it is there.

        A large SQLite file is looked through for damage beside this, and the finding tells how long ago.
        """
        found = examine(is_patient=False)
        shown = {
            "restored_at": restored_at(),
            "unwell": sum(one.state is not FindingState.OK for one in found),
            "findings": found,
        }
        return Response(StateOutput(shown).data)

    @extend_schema(request=None, responses=RestoreOutput)
    @action(detail=False, methods=["post"], url_path="confirm-restore")
    def confirm_restore(self, request: Request) -> Response:
        """Say that you have looked at what a restore lost. What had waited goes on. Takes a signed-in person."""
        try:
            was_open = restore_confirmation.confirm(by=self.person.email, actor=self.actor)
        except OSError as error:
            message = _(
                "Nothing was confirmed: the checkpoint file of the log could not be written."
            )
            raise Conflict(message) from error
        return Response(RestoreOutput({"was_open": was_open}).data)


class JobOutput(serializers.Serializer[Any]):
    """A job that runs by itself, as far as its runs are known."""

    name = serializers.CharField(help_text="For `run/`.")
    what = serializers.CharField()
    often = serializers.CharField(help_text="In words.")
    state = serializers.ChoiceField(
        [one.value for one in JobState],
        help_text="late: it should have run. failed: its last run failed. waiting: it has not run yet.",
    )
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Of the last run that ended. Runs of frequent jobs are noted each half minute.",
    )
    seconds = serializers.FloatField(allow_null=True, help_text="How long that run took.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="Null: no worker is alive.")
    failures = serializers.IntegerField(help_text="Runs that failed in the last 24 hours.")
    failed_at = serializers.DateTimeField(
        allow_null=True, help_text="Null: none failed in the last 24 hours."
    )
    fault = serializers.CharField(help_text="Why the last of them failed, in words.")
    error = serializers.CharField(help_text="The kind of its exception.")


class WorkerOutput(serializers.Serializer[Any]):
    """A worker that has run jobs in the last day."""

    name = serializers.CharField()
    is_alive = serializers.BooleanField(help_text="It has spoken in the last minutes.")
    seen_at = serializers.DateTimeField()
    since = serializers.DateTimeField(help_text="It has run jobs without a break from then on.")
    version = serializers.CharField(help_text="Of Trellis.")


class JobsOutput(serializers.Serializer[Any]):
    """What runs in the background, and who runs it."""

    problem = serializers.CharField(help_text="Why no job runs, and what to do. Empty: they run.")
    alive = serializers.IntegerField(help_text="Workers that are alive.")
    waiting = serializers.IntegerField(
        allow_null=True,
        help_text="Tasks that no worker has taken. Null: Redis does not answer, or refuses.",
    )
    waiting_since = serializers.DateTimeField(
        allow_null=True, help_text="When the oldest of them was handed out. Null: none waits."
    )
    failed = serializers.IntegerField(help_text="Jobs whose last run failed.")
    late = serializers.IntegerField(help_text="Jobs that should have run.")
    failures = serializers.IntegerField(help_text="Runs that failed in the last 24 hours.")
    jobs = JobOutput(many=True, help_text="What needs somebody stands first.")
    workers = WorkerOutput(many=True, help_text="At most 50.")


class RunJobInput(serializers.Serializer[Any]):
    """Which job is to run."""

    name = serializers.CharField(max_length=200)


class RunJobOutput(serializers.Serializer[Any]):
    """A job that a worker takes next."""

    name = serializers.CharField()
    what = serializers.CharField()


class JobsViewSet(PlatformViewSet):
    """Background jobs: when each ran, how it went, when it runs next, and which workers run them."""

    serializer_class = JobsOutput
    pagination_class = None  # one document

    @one_document(JobsOutput, "platform_jobs_retrieve")
    def list(self, request: Request) -> Response:
        """Look at every job. It answers without Redis and without a worker, too, and says so."""
        return Response(JobsOutput(read_jobs()).data)

    @extend_schema(request=RunJobInput, responses={202: RunJobOutput})
    @action(detail=False, methods=["post"])
    def run(self, request: Request) -> Response:
        """Have a job run now, beside its own times. It does what is due, so that is safe at any time."""
        job = run_now(self.read(RunJobInput)["name"], actor=self.actor)
        return Response(RunJobOutput(job).data, status=202)


class DatabasePartOutput(serializers.Serializer[Any]):
    """What people know as one thing of the database."""

    what = serializers.CharField()
    size = serializers.IntegerField(
        allow_null=True, help_text="Bytes, with indexes. Null: not counted in time."
    )
    rows = serializers.IntegerField(
        allow_null=True, help_text="An estimate of the database. Null: it has none."
    )
    tables = serializers.ListField(child=serializers.CharField())


class DatabaseSizeOutput(serializers.Serializer[Any]):
    """How large the database is, and what of."""

    engine = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    reusable = serializers.IntegerField(
        allow_null=True, help_text="Bytes of it that take what comes next. Null: not known."
    )
    parts = DatabasePartOutput(many=True, help_text="The ten largest, then everything else.")
    counted_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the sizes of the parts were counted. Null: just now, or not at all.",
    )
    is_being_counted = serializers.BooleanField(help_text="They will be known in a moment.")


class DiskOutput(serializers.Serializer[Any]):
    """One disk of the machine that answers, in bytes."""

    holds = serializers.CharField()
    total = serializers.IntegerField()
    free = serializers.IntegerField()
    is_low = serializers.BooleanField(help_text="It is nearly full.")


class FilesOutput(serializers.Serializer[Any]):
    """Files of one kind."""

    what = serializers.CharField()
    number = serializers.IntegerField(allow_null=True, help_text="Null: not counted.")
    size = serializers.IntegerField(allow_null=True, help_text="Bytes. Null: not counted.")
    where = serializers.CharField()
    is_partial = serializers.BooleanField(help_text="There are more than these.")
    newest_at = serializers.DateTimeField(
        allow_null=True, help_text="Of backups: when the newest was written."
    )


class WorkspaceFilesOutput(serializers.Serializer[Any]):
    """What one workspace keeps in files."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()
    number = serializers.IntegerField()
    size = serializers.IntegerField(help_text="Bytes.")


class LogRemovalOutput(serializers.Serializer[Any]):
    """What retention removed last from a log."""

    at = serializers.DateTimeField()
    workspace = serializers.CharField(help_text="Its name. Empty: it is gone.")
    kind = serializers.CharField(help_text="entries, or bodies: only what calls sent and got.")
    entries = serializers.IntegerField()


class StorageOutput(serializers.Serializer[Any]):
    """What takes how much room, and how much is left."""

    database = DatabaseSizeOutput()
    files_size = serializers.IntegerField(help_text="Bytes of all files that were counted.")
    files = FilesOutput(many=True)
    disks = DiskOutput(many=True)
    workspaces = WorkspaceFilesOutput(many=True, help_text="The ten with the most bytes of files.")
    removal = LogRemovalOutput(
        allow_null=True, help_text="Null: retention has removed nothing yet."
    )


class StorageViewSet(PlatformViewSet):
    """Storage: the database, files, disks, and the workspaces that keep the most."""

    serializer_class = StorageOutput
    pagination_class = None  # one document

    @one_document(StorageOutput, "platform_storage_retrieve")
    def list(self, request: Request) -> Response:
        """Look at what is stored, within a few seconds at most. What was not counted in time is null."""
        return Response(StorageOutput(read_storage()).data)


class SystemProgramOutput(serializers.Serializer[Any]):
    """A part that the installation runs on."""

    name = serializers.CharField()
    version = serializers.CharField(help_text="Empty: see `note`.")
    note = serializers.CharField()


class AppMigrationsOutput(serializers.Serializer[Any]):
    """How far the tables of one app are."""

    app = serializers.CharField()
    last = serializers.CharField(help_text="The last migration that was applied.")
    applied_at = serializers.DateTimeField(allow_null=True)
    to_apply = serializers.IntegerField()


class InstalledVersionOutput(serializers.Serializer[Any]):
    """A version that migrated the database."""

    version = serializers.CharField()
    commit = serializers.CharField(help_text="Empty: not known.")
    since = serializers.DateTimeField()


class VersionsOutput(serializers.Serializer[Any]):
    """Which versions the installation consists of."""

    version = serializers.CharField(help_text="Of Trellis.")
    commit = serializers.CharField(help_text="Empty: not known.")
    since = serializers.DateTimeField(
        allow_null=True, help_text="When this version migrated the database. Null: not known."
    )
    installed_at = serializers.DateTimeField(allow_null=True)
    to_apply = serializers.IntegerField(help_text="Migrations that wait.")
    programs = SystemProgramOutput(many=True)
    migrations = AppMigrationsOutput(many=True)
    history = InstalledVersionOutput(many=True, help_text="Newest first, at most 20.")


class VersionsViewSet(PlatformViewSet):
    """Versions of Trellis and of what it runs on."""

    serializer_class = VersionsOutput
    pagination_class = None  # one document

    @one_document(VersionsOutput, "platform_versions_retrieve")
    def list(self, request: Request) -> Response:
        """Look at the versions. There is no secret in them."""
        return Response(VersionsOutput(read_versions()).data)


platform_routes = [
    ("state", StateViewSet),
    ("jobs", JobsViewSet),
    ("storage", StorageViewSet),
    ("versions", VersionsViewSet),
]
