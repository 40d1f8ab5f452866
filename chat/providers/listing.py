"""What an endpoint says of its models: names, and what some providers add about size, sight and prices."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import httpx2
from django.utils.translation import gettext_noop as _

from chat.providers.base import ProviderSpec
from chat.providers.choosing import networks_of
from chat.providers.embeddings import is_embedding_model
from chat.providers.errors import (
    ProviderBadAnswer,
    ProviderError,
    ProviderListMissing,
    ProviderStalled,
    ProviderUnreachable,
)
from chat.providers.failures import connection_failure, error_of, read_error, wait_of
from workspaces import outbound

MOST_MODELS: Final = 500
LONGEST_NAME: Final = 200
TOTAL_SECONDS: Final = 15.0
_ENDS: Final = ("shutdown_date", "deprecation", "expiration_date")
"""Where OpenAI, Mistral and OpenRouter tell on which day they end a model."""
_CONNECT_SECONDS: Final = 5.0
_NOTHING_THERE: Final = {404, 405, 410, 501}
_MOST_TOKENS: Final = 100_000_000
_MILLION: Final = Decimal(1_000_000)
_HIGHEST_PRICE: Final = Decimal(100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model as its provider tells of it; None where it says nothing."""

    name: str
    context_tokens: int | None = None
    sees_pictures: bool | None = None
    calls_tools: bool | None = None
    reasons: bool | None = None
    prompt_price: Decimal | None = None
    """Per million tokens."""
    completion_price: Decimal | None = None
    ends_on: date | None = None
    """The day from which the provider serves it no more, where its list tells that."""

    @property
    def embeds(self) -> bool:
        """Whether it is a model for embeddings, by its name."""
        return is_embedding_model(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing:
    """An endpoint's models, and how long it took to tell them."""

    models: tuple[ListedModel, ...]
    left_out: int
    """Models beyond those that were asked for."""
    took_ms: int
    is_told: bool = True
    """False: the provider has no list, and its default model answers all the same."""

    def end_of(self, name: str) -> date | None:
        """The day on which the provider ends a model; None where it tells none."""
        return next((one.ends_on for one in self.models if one.name == name), None)


async def list_models(
    spec: ProviderSpec, *, most: int = MOST_MODELS, offered: Collection[str] | None = None
) -> ModelListing:
    """Ask an endpoint for its models.

    Args:
        most: further ones are left out.
        offered: tell of these only, and count no others. None: of every one.

    Raises:
        ProviderError: it cannot be reached, refuses the key, or gives no list.
    """
    key = spec.reveal_key("listing models") or "none"
    headers = {"accept": "application/json", "authorization": f"Bearer {key}"}
    bounds = outbound.Bounds(connect_seconds=_CONNECT_SECONDS, total_seconds=TOTAL_SECONDS)
    started = time.monotonic()
    try:
        async with outbound.client(bounds=bounds, networks=networks_of(spec)) as client:
            answer = await client.get(spec.address("/models"), headers=headers)
    except outbound.NetworkRefused as error:
        raise ProviderUnreachable(
            _(
                "Trellis is not allowed to connect to this network. The platform's owner can allow it."
            )
        ) from error
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise ProviderStalled(_("The model provider did not answer in time.")) from error
    except outbound.ResponseTooLarge as error:
        raise ProviderBadAnswer(_("The provider's list of models is too long to read.")) from error
    except httpx2.HTTPError as error:
        raise connection_failure(spec.base_url, is_platforms=spec.is_platforms) from error
    took_ms = round((time.monotonic() - started) * 1000)
    if answer.status_code in _NOTHING_THERE:
        raise ProviderListMissing
    if not answer.is_success:
        raise _refusal(answer)
    try:
        rows = json.loads(answer.content)["data"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ProviderBadAnswer(ProviderListMissing.default_message) from error
    found: dict[str, ListedModel] = {}
    for row in rows if isinstance(rows, list) else ():
        model = _read(row)
        if model is not None and (offered is None or model.name in offered):
            found.setdefault(model.name, model)
    ordered = sorted(found.values(), key=lambda one: one.name.lower())
    return ModelListing(
        models=tuple(ordered[:most]),
        left_out=max(0, len(ordered) - most),
        took_ms=took_ms,
    )


def _refusal(answer: httpx2.Response) -> ProviderError:
    try:
        body: object = json.loads(answer.content)
    except (ValueError, RecursionError):
        body = ""
    return error_of(
        read_error(body),
        status=answer.status_code,
        wait=wait_of(answer.headers),
        has_tools=False,
        has_pictures=False,
        details={},
    )


def _read(row: object) -> ListedModel | None:
    if not isinstance(row, Mapping):
        return None
    name = row.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        return None
    # OpenRouter says most; vLLM says `max_model_len`, others one of the rest.
    architecture, pricing = _mapping(row.get("architecture")), _mapping(row.get("pricing"))
    sees = architecture.get("input_modalities")
    takes = row.get("supported_parameters")
    sizes = (row.get(key) for key in ("context_length", "max_model_len", "context_window"))
    return ListedModel(
        name=name,
        context_tokens=next((size for one in sizes if (size := _tokens(one))), None),
        sees_pictures="image" in sees if isinstance(sees, list) else None,
        calls_tools="tools" in takes if isinstance(takes, list) else None,
        reasons="reasoning" in takes if isinstance(takes, list) else None,
        prompt_price=_price(pricing.get("prompt")),
        completion_price=_price(pricing.get("completion")),
        ends_on=next((day for key in _ENDS if (day := _day(row.get(key)))), None),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tokens(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= _MOST_TOKENS else None  # type: ignore[operator,return-value]


def _day(value: object) -> date | None:
    try:
        # Mistral tells the moment.
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _price(value: object) -> Decimal | None:
    """A price for one token, as a price for a million."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        price = Decimal(str(value)) * _MILLION
    except InvalidOperation:
        return None
    if not price.is_finite() or not 0 <= price <= _HIGHEST_PRICE:
        return None
    return price.quantize(Decimal("0.000001"))
