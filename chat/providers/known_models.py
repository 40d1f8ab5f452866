"""What is known of a model: how much it reads, what it costs, which tool protocol it speaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from uuid import UUID

from django.db.models import Model, Subquery

from chat.models import ProviderModel
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.list_prices import Rates, list_price
from chat.values import ToolProtocol
from workspaces.database.prepared import PreparedRows

_MILLION = Decimal(1_000_000)
_SMALLEST = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Per million tokens; None where nobody has said."""

    prompt: Decimal | None = None
    cached: Decimal | None = None
    completion: Decimal | None = None
    long_above: int | None = None
    """Tokens of a prompt. The whole of a request with a longer one goes by `long_rates`."""
    long_rates: Rates | None = None
    listed_on: date | None = field(default=None, compare=False)
    """The day of the provider's list that they are from; None: the workspace has entered them."""

    def cost_of(self, usage: TokenCount) -> Decimal | None:
        """What this many tokens cost; None: a price is unknown, and half a cost would read as a whole one."""
        rates = self._rates_of(usage)
        if rates is None:
            return None
        cost = (
            rates.prompt * (usage.prompt - usage.cached)
            + rates.cached * usage.cached
            + rates.completion * usage.completion
        )
        return (cost / _MILLION).quantize(_SMALLEST, ROUND_HALF_UP)

    def _rates_of(self, usage: TokenCount) -> Rates | None:
        if self.long_above is not None and usage.prompt > self.long_above:
            return self.long_rates
        if self.prompt is None or self.completion is None:
            return None
        cached = self.cached if self.cached is not None else self.prompt
        return Rates(self.prompt, cached, self.completion)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What an administrator has entered of a model, and what has been learned."""

    context_tokens: int | None = None
    prices: Prices = field(default_factory=Prices)
    sees_pictures: bool | None = None
    """None: nobody knows yet; the first picture tries it."""
    learned_protocol: ToolProtocol | None = None
    gets_tools: bool = True
    """False: an administrator has said that it calls none, so it is offered none in any form."""
    takes_functions: bool | None = None
    """None: nobody knows yet; the first request tries it."""
    reasons: bool | None = None
    """Whether it thinks before it answers; None: nobody knows, and its answers show it."""


def known_facts(workspace_id: UUID, spec: ProviderSpec) -> ModelFacts:
    """What this workspace knows of the model."""
    if spec.provider_id is None:
        row = _PLATFORMS_MODEL.first(workspace_id, spec.model)
    else:
        row = _MODEL.first(workspace_id, spec.provider_id, spec.model)
    return _facts((getattr(row, name, None) for name in _FACTS), spec)


_FACTS = (
    "context_tokens",
    "prompt_price",
    "cached_price",
    "completion_price",
    "sees_pictures",
    "learned_protocol",
    "calls_tools",
    "told_calls_tools",
    "reasons",
    "told_reasons",
)


def embedding_prices(workspace_id: UUID, spec: ProviderSpec) -> Prices:
    """What an embedding model costs: it writes nothing, so a price for that need not be known."""
    return without_answers(known_facts(workspace_id, spec).prices)


def without_answers(prices: Prices) -> Prices:
    """The same where nothing is written."""
    return replace(prices, completion=prices.completion or Decimal(0))


def facts_beside(workspace_id: UUID, provider_id: UUID | None, model: str) -> dict[str, Subquery]:
    """The same as annotations of another query, for `facts_of`."""
    rows = ProviderModel.objects.for_workspace(workspace_id)
    rows = rows.filter(provider_id=provider_id, model=model).order_by()
    return {f"fact_{name}": Subquery(rows.values(name)[:1]) for name in _FACTS}


def facts_of(row: Model, spec: ProviderSpec) -> ModelFacts:
    """What a row with such annotations says of that model."""
    return _facts((getattr(row, f"fact_{name}") for name in _FACTS), spec)


def prices_of(
    base_url: str, model: str, *, prompt: Decimal | None, completion: Decimal | None
) -> Prices:
    """What the workspace has entered, or what the provider is known to ask today."""
    is_entered = prompt is not None or completion is not None
    listed = None if is_entered else list_price(base_url, model, on=datetime.now(UTC).date())
    if listed is None:
        return Prices(prompt=prompt, completion=completion)
    return Prices(
        **listed.rates._asdict(),
        long_above=listed.long_above,
        long_rates=listed.long_rates,
        listed_on=listed.listed_on,
    )


def days_of(prices: Iterable[Prices]) -> dict[str, date | None]:
    """From when to when the list prices among these are, as templates tell it."""
    days = [one.listed_on for one in prices if one.listed_on is not None]
    return {"listed_from": min(days, default=None), "listed_to": max(days, default=None)}


def _facts(values: Iterable[Any], spec: ProviderSpec) -> ModelFacts:
    context_tokens, prompt, cached, completion, sees_pictures, learned_protocol, *abilities = values
    calls_tools, told_calls_tools, reasons, told_reasons = abilities
    prices = prices_of(spec.base_url, spec.model, prompt=prompt, completion=completion)
    return ModelFacts(
        context_tokens=context_tokens,
        prices=prices if cached is None else replace(prices, cached=cached),
        sees_pictures=sees_pictures,
        learned_protocol=ToolProtocol(learned_protocol) if learned_protocol else None,
        gets_tools=calls_tools is not False,
        takes_functions=told_calls_tools if calls_tools is None else calls_tools,
        reasons=told_reasons if reasons is None else reasons,
    )


def _model(workspace_id: UUID, provider_id: UUID, model: str) -> Any:
    rows = ProviderModel.objects.for_workspace(workspace_id)
    return rows.filter(provider_id=provider_id, model=model)[:1]


def _platforms_model(workspace_id: UUID, model: str) -> Any:
    rows = ProviderModel.objects.for_workspace(workspace_id)
    return rows.filter(provider_id=None, model=model)[:1]


_MODEL = PreparedRows[ProviderModel](_model, UUID, UUID, str)
_PLATFORMS_MODEL = PreparedRows[ProviderModel](_platforms_model, UUID, str)


def learn_protocol(workspace_id: UUID, spec: ProviderSpec, protocol: ToolProtocol) -> None:
    """Remember which protocol a model was found to need."""
    rows = _row_of(workspace_id, spec)
    rows.update(learned_protocol=protocol.value)


def learn_sight(workspace_id: UUID, spec: ProviderSpec, *, sees_pictures: bool) -> None:
    """Remember whether a model takes pictures; what an administrator has entered stays."""
    _row_of(workspace_id, spec).filter(sees_pictures=None).update(sees_pictures=sees_pictures)


def learn_context(workspace_id: UUID, spec: ProviderSpec, tokens: int) -> None:
    """Remember how much a model reads, as its own refusal says; what an administrator has entered stays."""
    if tokens < 512:
        return
    _row_of(workspace_id, spec).filter(context_tokens=None).update(context_tokens=tokens)


def _row_of(workspace_id: UUID, spec: ProviderSpec):  # type: ignore[no-untyped-def]  # a scoped query set
    """The row of this model, made if there is none."""
    rows = ProviderModel.objects.for_workspace(workspace_id)
    wanted = {"provider_id": spec.provider_id, "model": spec.model}
    if not rows.filter(**wanted).exists():
        made = ProviderModel(workspace_id=workspace_id, **wanted)
        # Another process may learn the same at the same time.
        ProviderModel.objects.bulk_create([made], ignore_conflicts=True)
    return rows.filter(**wanted)
