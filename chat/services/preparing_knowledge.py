"""Preparing knowledge files to be searched by meaning: a vector for each passage, in the background.

What is done is kept batch by batch, so any process goes on where another one stopped. Nothing is lost if a batch is done
twice. A file that cannot be prepared is searched by words, and tried again after longer and longer pauses.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, Sum, When
from django.utils.translation import gettext_noop as _

from chat.models import (
    Bud,
    KnowledgeFile,
    KnowledgePassage,
    KnowledgePreparation,
    ModelProvider,
    PassageVector,
    WithheldReason,
)
from chat.providers import limits, model_requests
from chat.providers.base import Embeddings, ProviderSpec, TokenCount
from chat.providers.choosing import embedding_spec_for, platform_embedding_model
from chat.providers.errors import ContextTooLong, ProviderBadAnswer, ProviderError
from chat.providers.known_models import embedding_prices
from chat.providers.spending import Payer, embedding_bill
from chat.vectors import pack
from mcp_servers.client.connections import runtime
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.words.formats import whole

logger = logging.getLogger(__name__)

MOST_PASSAGES: Final = 20_000
"""Of one bud: about 20 million characters. More are searched by words only."""
BATCH: Final = 32
"""Passages in one request: at most about 12,000 tokens."""
BATCH_SECONDS: Final = 60.0
"""A small machine may have to load the model first."""
RUN_SECONDS: Final = 12.0
"""Less than between two runs: other tasks wait for the same workers."""
_TURN_SECONDS: Final = 5.0
"""For one file, if others wait."""
_LEASE: Final = timedelta(seconds=180)
_FIRST_PAUSE: Final = 30.0
_LONGEST_PAUSE: Final = 3_600.0
_NO_ROOM_PAUSE: Final = timedelta(seconds=15)
_CANDIDATES: Final = 10
_SHORTEST_TEXT: Final = 150
"""Characters that every model reads."""
TOO_MANY: Final = _("This bud knows more than %(most)s passages. Remove files to make room.") % {
    "most": whole(MOST_PASSAGES)
}

UNFORESEEN: Final = "It failed for a reason that is in the platform's log."


@dataclass(frozen=True, slots=True)
class _Work:
    """What this process has taken on."""

    preparation: KnowledgePreparation
    spec: ProviderSpec


def prepare_due() -> int:
    """Prepare files of all workspaces in turn, until nothing is due or the time is up; gives how many batches were done."""
    until = time.monotonic() + RUN_SECONDS
    batches = 0
    while time.monotonic() < until:
        work = _take_on()
        if work is None:
            break
        try:
            batches += _go_on(work, min(until, time.monotonic() + _TURN_SECONDS))
        except Exception:
            # One file must not keep those of others from being prepared.
            logger.exception("knowledge_not_prepared")
            _give_up_for_now(work.preparation)
    return batches


def _without_their_model() -> list[UUID]:
    """Providers whose model for this the platform's owner withholds."""
    limited = ModelProvider.objects.across_workspaces().filter(
        offered_models__isnull=False, embedding_model__gt=""
    )
    rows = limited.only("embedding_model", "offered_models")
    return [row.pk for row in rows if not row.offers(row.embedding_model)]


def _due() -> Any:
    now = database_now()
    has_own = Q(
        bud__provider__is_active=True,
        bud__provider__withheld=WithheldReason.NO.value,
        bud__provider__embedding_model__gt="",
    ) & ~Q(bud__provider_id__in=_without_their_model())
    is_of_own = has_own & Q(
        preparation__provider_id=F("bud__provider_id"),
        preparation__model=F("bud__provider__embedding_model"),
    )
    platforms = platform_embedding_model()
    has_platforms = Q(bud__provider=None) if platforms else Q(pk__in=())
    is_of_platforms = has_platforms & Q(preparation__provider=None, preparation__model=platforms)
    # A condition in the database's own words: of what is empty, neither it nor its opposite would be true.
    is_of_its_model = Case(When(is_of_own | is_of_platforms, then=True), default=False)
    is_free = Q(preparation__alive_until=None) | Q(preparation__alive_until__lt=now)
    # Whoever corrects the provider need not wait for the end of a pause.
    is_time = Q(preparation__due_at__lte=now) | Q(
        preparation__updated_at__lt=F("bud__provider__updated_at")
    )
    is_unfinished = Q(preparation__finished_at=None) & is_free & is_time
    rows = KnowledgeFile.objects.across_workspaces().filter(
        has_own | has_platforms, bud__is_archived=False
    )
    rows = rows.annotate(is_of_its_model=is_of_its_model)
    rows = rows.filter(Q(preparation=None) | Q(is_of_its_model=False) | is_unfinished)
    return rows.order_by(F("preparation__due_at").asc(nulls_first=True), "pk")


def _take_on() -> _Work | None:
    for file in _due().select_related("bud__provider")[:_CANDIDATES]:
        spec = embedding_spec_for(file.bud)
        if spec is None:
            continue
        row = _begin(file, spec)
        if row is not None:
            return _Work(row, spec)
    return None


@transaction.atomic
def _begin(file: KnowledgeFile, spec: ProviderSpec) -> KnowledgePreparation | None:
    """Take a file on; None: another process has it, or it has gone."""
    workspace_id = file.workspace_id
    # One at a time for a bud, so that its files are counted together.
    buds = Bud.objects.for_workspace(workspace_id).select_for_update(of=("self",))
    files = KnowledgeFile.objects.for_workspace(workspace_id).filter(pk=file.pk)
    if buds.find(file.bud_id) is None or not files.exists():
        return None  # somebody has removed it since it was found
    rows = KnowledgePreparation.objects.for_workspace(workspace_id)
    now = database_now()
    row: KnowledgePreparation | None = rows.filter(file=file).first()
    if row is not None and (row.provider_id, row.model) != (spec.provider_id, spec.model):
        row.delete()
        row = None
    passages = KnowledgePassage.objects.for_workspace(workspace_id).filter(file=file).count()
    if row is None:
        row = KnowledgePreparation(
            workspace_id=workspace_id,
            file=file,
            provider_id=spec.provider_id,
            model=spec.model,
            passages=passages,
            due_at=now,
        )
        row.save(force_insert=True)
    elif row.finished_at or (row.alive_until is not None and row.alive_until > now):
        return None
    begun = rows.filter(Q(done__gt=0) | Q(alive_until__gt=now), file__bud_id=file.bud_id)
    others = begun.exclude(pk=row.pk).aggregate(total=Sum("passages"))["total"] or 0
    if others + passages > MOST_PASSAGES:
        _put_off(row, TOO_MANY, _LONGEST_PAUSE)
        return None
    row.alive_until = now + _LEASE
    row.save(update_fields=["alive_until", "updated_at"])
    return row


def _go_on(work: _Work, until: float) -> int:
    """Do some batches of a file; gives how many."""
    row, spec = work.preparation, work.spec
    batches = 0
    while True:
        passages = _next_passages(row)
        if not passages:
            _finish(row)
            return batches
        if not limits.has_room(spec):
            _let_go(row, _NO_ROOM_PAUSE)
            return batches
        texts = [passage.text for passage in passages if passage.text.strip()]
        try:
            found = _embed(spec, texts, _payer(row)) if texts else Embeddings(vectors=())
            if found.vectors and row.numbers not in (0, len(found.vectors[0])):
                _begin_anew(row)
                return batches
            _store(row, passages, found, spec)
        except ProviderError as error:
            _fail(row, error)
            return batches
        except _Overtaken:
            return batches
        batches += 1
        if time.monotonic() > until:
            _let_go(row, timedelta())
            return batches


class _Overtaken(Exception):
    """The file, its provider or its model has gone, or another process was faster."""


def _next_passages(row: KnowledgePreparation) -> list[KnowledgePassage]:
    rows = KnowledgePassage.objects.for_workspace(row.workspace_id)
    rows = rows.filter(file_id=row.file_id, position__gte=row.done)
    return list(rows.only("position", "text").order_by("position")[:BATCH])


def _payer(row: KnowledgePreparation) -> Payer:
    """The workspace: no person in particular asks for it."""
    actor = Actor.system(label="knowledge", source=Source.TASK, workspace_id=row.workspace_id)
    return Payer(workspace_id=row.workspace_id, actor=actor, purpose="knowledge files")


def _embed(spec: ProviderSpec, texts: Sequence[str], payer: Payer) -> Embeddings:
    """Vectors of texts. What is too long for the model goes in smaller pieces, and at last without its end.

    Raises:
        ProviderError: in all its kinds.
    """
    bill = embedding_bill(payer, spec)
    work = model_requests.embed(spec, texts, seconds=BATCH_SECONDS, bill=bill)
    try:
        return runtime.run_sync(work, timeout_seconds=BATCH_SECONDS + 5)
    except ContextTooLong:
        if len(texts) > 1:
            half = len(texts) // 2
            one, other = _embed(spec, texts[:half], payer), _embed(spec, texts[half:], payer)
            return Embeddings(
                vectors=[*one.vectors, *other.vectors], tokens=one.tokens + other.tokens
            )
        if len(texts[0]) <= _SHORTEST_TEXT:
            raise
        return _embed(spec, [texts[0][: len(texts[0]) // 2]], payer)


def _store(
    row: KnowledgePreparation,
    passages: Sequence[KnowledgePassage],
    found: Embeddings,
    spec: ProviderSpec,
) -> None:
    """Keep a batch.

    Raises:
        ProviderBadAnswer: it holds no vectors that can be compared.
        _Overtaken: as above.
    """
    vectors = iter(found.vectors)
    made = []
    try:
        for passage in passages:
            if passage.text.strip():
                packed = pack(next(vectors))
                made.append(
                    PassageVector(
                        workspace_id=row.workspace_id,
                        preparation=row,
                        position=passage.position,
                        signs=packed.signs,
                        numbers=packed.numbers,
                    )
                )
    except ValueError as error:
        raise ProviderBadAnswer from error
    cost = embedding_prices(row.workspace_id, spec).cost_of(TokenCount(prompt=found.tokens))
    start = row.done
    row.done = passages[-1].position + 1
    row.numbers = len(found.vectors[0]) if found.vectors else row.numbers
    row.tokens += found.tokens
    row.cost = row.cost if cost is None else (row.cost or Decimal(0)) + cost
    row.fault, row.failures = "", 0
    with transaction.atomic():
        row.alive_until = database_now() + _LEASE
        if not _write(row, start, "done", "numbers", "tokens", "cost", "fault", "failures"):
            raise _Overtaken
        PassageVector.objects.across_workspaces().bulk_create(made)


def _write(row: KnowledgePreparation, start: int, *fields: str) -> bool:
    """Change the row if nobody else has meanwhile."""
    values = {name: getattr(row, name) for name in (*fields, "alive_until")}
    mine = KnowledgePreparation.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
    return bool(mine.filter(done=start).update(**values, updated_at=database_now()))


def _finish(row: KnowledgePreparation) -> None:
    row.finished_at, row.alive_until = database_now(), None
    _write(row, row.done, "finished_at")


def _let_go(row: KnowledgePreparation, pause: timedelta) -> None:
    row.due_at, row.alive_until = database_now() + pause, None
    _write(row, row.done, "due_at")


def _begin_anew(row: KnowledgePreparation) -> None:
    """The model's vectors have another length than before: they cannot be compared."""
    logger.warning("embeddings_changed_length", extra={"provider": str(row.provider_id)})
    row.delete()


def _fail(row: KnowledgePreparation, error: ProviderError) -> None:
    logger.info("knowledge_not_prepared", extra={"code": error.code})
    wait = error.details.get("wait")
    pause = _FIRST_PAUSE * 2 ** min(row.failures, 10)
    if isinstance(wait, int | float):
        pause = max(pause, float(wait))
    _put_off(row, error.message, min(pause, _LONGEST_PAUSE))


def _give_up_for_now(row: KnowledgePreparation) -> None:
    stored = KnowledgePreparation.objects.for_workspace(row.workspace_id).find(row.pk)
    if stored is not None:
        _put_off(stored, UNFORESEEN, _LONGEST_PAUSE)


def _put_off(row: KnowledgePreparation, fault: str, pause: float) -> None:
    row.fault, row.failures, row.alive_until = fault[:300], row.failures + 1, None
    row.due_at = database_now() + timedelta(seconds=pause)
    _write(row, row.done, "fault", "failures", "due_at")
