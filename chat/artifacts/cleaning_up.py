"""Contents without a row, and files that were deleted for good. The platform's own job."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from django.utils import timezone

from chat.artifacts.rows import FILES, named_contents
from chat.artifacts.storage import artifact_storage, drop
from chat.live.recording import changing
from chat.models import Artifact, FileReading
from workspaces.jobs.sweeping import sweep as sweep_rows

logger = logging.getLogger(__name__)

ORPHAN_HOURS = 1
"""Far longer than any writing takes: what is younger may be about to get its row."""
DELETED_DAYS = 7
MOST_AT_ONCE = 5_000
MOST_LOOKED_AT = 20_000
"""Contents that one round looks at. The next one takes them in another order, so that it comes to all of them."""
_BATCH = 500


def sweep() -> int:
    """Remove what nobody can reach any more; gives how many contents."""
    purge_deleted()
    return sum(_sweep_batch(batch) for batch in _batches())


def purge_deleted() -> int:
    """Forget files that were deleted some days ago; their contents are orphans then."""
    since = timezone.now() - timedelta(days=DELETED_DAYS)
    rows = Artifact.objects.across_workspaces().filter(is_deleted=True, updated_at__lt=since)

    def purge(file: Artifact) -> bool:
        # Not found: the conversation went, and the file with it.
        with changing(file.conversation_id, file.workspace_id):
            mine = Artifact.objects.for_workspace(file.workspace_id)
            removed = mine.filter(pk=file.pk, is_deleted=True, updated_at__lt=since).delete()[0]
        return removed > 0

    return sweep_rows(rows, purge, label="purge_deleted_files", most=MOST_AT_ONCE)


def _sweep_batch(paths: list[str]) -> int:
    files = [kind.objects.across_workspaces() for kind in FILES]
    named = named_contents(files, FileReading.objects.across_workspaces(), paths)
    orphans = [path for path in paths if path not in named and _is_old(path)]
    drop(orphans)
    if orphans:
        logger.info("artifacts_swept", extra={"count": len(orphans)})
    return len(orphans)


def _is_old(path: str) -> bool:
    """Whether it is not of this hour. One request of the storage, so only what has no row is asked about."""
    limit = timezone.now() - timedelta(hours=ORPHAN_HOURS)
    try:
        return artifact_storage().get_modified_time(path) < limit
    except Exception:  # noqa: BLE001  removed meanwhile, in the words of the storage's backend
        return False


def _batches() -> Iterator[list[str]]:
    paths = islice(_paths(), MOST_LOOKED_AT)
    while batch := list(islice(paths, _BATCH)):
        yield batch


def _paths() -> Iterator[str]:
    """Every content, folder by folder, in another order each time."""
    storage = artifact_storage()
    for workspace in _shuffled(""):
        for prefix in _shuffled(workspace):
            folder = f"{workspace}/{prefix}"
            for name in storage.listdir(folder)[1]:
                yield f"{folder}/{name}"


def _shuffled(folder: str) -> list[str]:
    """The folders within one; none where nothing has ever been stored."""
    try:
        found: list[str] = artifact_storage().listdir(folder)[0]
    except FileNotFoundError:
        return []
    return random.sample(found, len(found))
