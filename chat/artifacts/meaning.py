"""Finding passages by what they mean: the search's own vector is compared with those that were prepared."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q

from chat.artifacts.knowledge import owner_of
from chat.models import (
    Bud,
    KnowledgeFile,
    KnowledgePassage,
    KnowledgePreparation,
    PassageVector,
    WithheldReason,
)
from chat.providers import model_requests
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.choosing import embedding_spec_for
from chat.providers.errors import ProviderError
from chat.providers.recent_failures import RecentFailures, is_of_provider
from chat.providers.specs import embedding_spec_of
from chat.providers.spending import Payer, embedding_bill
from chat.vectors import most_alike, similarity
from chat.wire.payloads import knowledge_json, moment
from workspaces.database import in_database

logger = logging.getLogger(__name__)

QUERY_SECONDS: Final = 2.0
"""For the vector of a search; then words alone have to do."""
MOST_MULTIPLIED: Final = 300_000
"""Numbers of the vectors whose signs are most alike: of short vectors, whose signs say less, there are more."""
MOST_COMPARED: Final = 2_000
"""Vectors, however short they are."""
WORDS_ONLY: Final = "Searched by words only, since the search by meaning did not work this time."
recent_failures: Final = RecentFailures()
"""A provider that has just not answered would cost each further search its seconds."""
_LEAST_SHARE: Final = 0.5
"""Of the best passage's likeness."""
_LEAST_SIMILARITY: Final = 1e-6
_ROWS_AT_ONCE: Final = 2_000


@dataclass(slots=True)
class KnowledgeQuery:
    """What a bud looks for in its files. Ask for its meaning first; without one, words have to do."""

    bud: Bud
    text: str
    payer: Payer
    note: str = ""
    """What the model has to know of this search; empty: nothing."""
    spec: ProviderSpec | None = None
    """Who was asked; None: nobody."""
    usage: TokenCount = field(default_factory=TokenCount)
    _prepared: tuple[UUID, ...] = ()
    _vector: Sequence[float] = ()

    @property
    def has_meaning(self) -> bool:
        """Whether passages can be found by it."""
        return bool(self._vector)

    async def ask(self) -> None:
        """Have the bud's provider say what the text means, if files were prepared with it. Raises nothing."""
        try:
            await self._ask()
        except ProviderError as error:
            logger.info("search_by_words_only", extra={"code": error.code})
            self.note = WORDS_ONLY
        except Exception:
            # Whatever it is, words may still find something, and the call has to have an end in the log.
            logger.exception("search_by_words_only")
            self.note = WORDS_ONLY

    async def _ask(self) -> None:
        spec, prepared = await in_database(_prepared_of, self.bud)
        if spec is None or not prepared:
            return
        bill = await in_database(embedding_bill, self.payer, spec)
        if recent_failures.reason(spec.provider_id) is not None:
            self.note = WORDS_ONLY
            return
        self.spec = spec
        try:
            found = await model_requests.embed(spec, [self.text], seconds=QUERY_SECONDS, bill=bill)
        except ProviderError as error:
            if is_of_provider(error):
                recent_failures.note(spec.provider_id, error)
            raise
        recent_failures.forget(spec.provider_id)
        self.usage = TokenCount(prompt=found.tokens)
        vector = found.vectors[0]
        fitting = [one.pk for one in prepared if one.numbers == len(vector)]
        if fitting:
            self._prepared, self._vector = tuple(fitting), vector

    def nearest(self, most: int, file: KnowledgeFile | None = None) -> list[KnowledgePassage]:
        """The passages whose meaning is nearest, the nearest first.

        Args:
            file: only in this one.
        """
        if not self.has_meaning:
            return []
        rows: Any = PassageVector.objects.for_workspace(self.bud.workspace_id)
        rows = rows.filter(
            preparation__in=self._prepared, preparation__file__bud_id=owner_of(self.bud)
        ).order_by()
        if file is not None:
            rows = rows.filter(preparation__file=file)
        signs = rows.values_list("pk", "signs").iterator(chunk_size=_ROWS_AT_ONCE)
        most_compared = min(MOST_COMPARED, MOST_MULTIPLIED // len(self._vector))
        alike = most_alike(self._vector, signs, most_compared)
        near = [
            (similarity(self._vector, bytes(numbers)), file_id, position)
            for numbers, file_id, position in rows.filter(pk__in=alike).values_list(
                "numbers", "preparation__file_id", "position"
            )
        ]
        near.sort(key=lambda one: -one[0])
        # Some passage is always the nearest, also where nothing is about it: what is far behind the best says nothing.
        least = near[0][0] * _LEAST_SHARE if near else 0.0
        near = [one for one in near if one[0] >= max(least, _LEAST_SIMILARITY)][:most]
        return self._passages([(file_id, position) for _, file_id, position in near])

    def _passages(self, places: Sequence[tuple[UUID, int]]) -> list[KnowledgePassage]:
        if not places:
            return []
        wanted = Q()
        for file_id, position in places:
            wanted |= Q(file_id=file_id, position=position)
        rows = KnowledgePassage.objects.for_workspace(self.bud.workspace_id).filter(wanted)
        found = {(row.file_id, row.position): row for row in rows.select_related("file")}
        return [found[place] for place in places if place in found]


def _prepared_of(bud: Bud) -> tuple[ProviderSpec | None, list[KnowledgePreparation]]:
    """What is ready to be searched, and with which model; no query where the bud's provider has none for it."""
    spec = embedding_spec_for(bud) if bud.has_knowledge else None
    if spec is None:
        return None, []
    rows = KnowledgePreparation.objects.for_workspace(bud.workspace_id).filter(
        file__bud_id=owner_of(bud),
        finished_at__isnull=False,
    )
    if bud.provider is None:
        return spec, list(rows.filter(provider=None, model=spec.model))
    # As the provider is now.
    rows = rows.filter(
        provider=bud.provider,
        provider__is_active=True,
        provider__withheld=WithheldReason.NO.value,
        model=F("provider__embedding_model"),
    )
    found = list(rows.select_related("provider"))
    provider = found[0].provider if found else None
    return embedding_spec_of(provider) if provider is not None else None, found


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How far a file can be searched by meaning."""

    is_ready: bool = False
    done: int = 0
    passages: int = 0
    fault: str = ""
    """Why it cannot be yet, in plain words."""
    again_at: datetime | None = None
    """When that is tried again."""


def readiness_of(bud: Bud, files: Iterable[KnowledgeFile]) -> dict[UUID, Readiness]:
    """The same for files of a bud; empty, and no query, where its provider has no embedding model."""
    spec = embedding_spec_for(bud)
    if spec is None:
        return {}
    known = [file.pk for file in files]
    rows = KnowledgePreparation.objects.for_workspace(bud.workspace_id).filter(
        file__in=known, provider=bud.provider, model=spec.model
    )
    found = {row.file_id: _readiness(row) for row in rows}
    return {pk: found.get(pk) or Readiness() for pk in known}


def knowledge_listed(bud: Bud, files: Iterable[KnowledgeFile]) -> list[dict[str, Any]]:
    """Files of a bud as pages and programs are told of them. Needs the bud's `provider` loaded, or a query for it."""
    listed = list(files)
    known = readiness_of(bud, listed)
    return [
        knowledge_json(file, readiness_json(known[file.pk]) if file.pk in known else None)
        for file in listed
    ]


def readiness_json(readiness: Readiness) -> dict[str, Any]:
    """The same in one word, with numbers."""
    if readiness.is_ready:
        state = "ready"
    elif readiness.fault:
        state = "words_only"
    else:
        state = "preparing"
    again_at = readiness.again_at
    return {
        "state": state,
        "done": readiness.done,
        "passages": readiness.passages,
        "fault": readiness.fault,
        "again_at": moment(again_at) if again_at else None,
    }


def _readiness(row: KnowledgePreparation) -> Readiness:
    return Readiness(
        is_ready=row.finished_at is not None,
        done=row.done,
        passages=row.passages,
        fault=row.fault,
        again_at=row.due_at if row.fault else None,
    )
