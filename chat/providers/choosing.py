"""Which endpoint serves a bud's model, and the client for it: one per endpoint and key.

Clients live on the connections' loop thread, where turns run, and share two HTTP clients: one for
what tenants configured, one for what the platform's owner did.
"""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from uuid import UUID

import httpx2
from django.conf import settings

from chat.demo_model.transport import DEMO_ORIGIN, demo_transport
from chat.models import Bud, Conversation, ProviderModel, Turn
from chat.providers.base import ModelClient, ProviderLimits, ProviderSpec
from chat.providers.errors import ProviderSwitchedOff
from chat.providers.shared import switched_off
from chat.providers.specs import embedding_spec_of, spec_of
from mcp_servers.client.connections import runtime
from workspaces import outbound
from workspaces.secrets import Secret

DEMO_MODEL = "demo"
OPENAI_MODEL = "gpt-6.1-terra"
"""The one that is asked where the owner has set a key and nothing else; docs/configuration.md names it."""
_MOST_CLIENTS = 200
_ANYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_PROBE_SECONDS = 0.5


def provider_for(bud: Bud) -> ProviderSpec:
    """Where this bud's model is served: by its own provider, or by the platform's. Needs `provider` loaded.

    Raises:
        ProviderSwitchedOff: it has a provider, and that is off; no other one stands in for it.
    """
    if bud.provider is not None:
        if not bud.provider.answers:
            raise switched_off(bud.provider)
        return spec_of(bud.provider, bud.model)
    return platform_model(bud.workspace_id, bud.model)


def platform_model(workspace_id: UUID, model: str = "") -> ProviderSpec:
    """Where the platform's own provider serves a model for this workspace, and within which limits.

    Args:
        model: its default one, if empty.
    """
    spec = platform_provider()
    if spec.is_demo:
        return spec
    return replace(spec, model=model or spec.model, limits=_platform_limits(workspace_id, spec))


def embedding_spec_for(bud: Bud) -> ProviderSpec | None:
    """Where a bud's knowledge gets its vectors: at the provider of its model. Needs `provider` loaded.

    None: it is searched by words only.
    """
    if bud.provider is not None:
        return embedding_spec_of(bud.provider)
    model = platform_embedding_model()
    return platform_model(bud.workspace_id, model) if model else None


def platform_embedding_model() -> str:
    """The embedding model of the platform's own provider; empty: it has none."""
    model = settings.TRELLIS.openai_embedding_model or ""
    return "" if not model or platform_provider().is_demo else model


def _platform_limits(workspace_id: UUID, spec: ProviderSpec) -> ProviderLimits | None:
    config = settings.TRELLIS
    if config.openai_most_at_once is None and config.openai_most_a_minute is None:
        return None
    return ProviderLimits(
        workspace_id=workspace_id,
        provider_id=None,
        name=spec.name,
        at_once=config.openai_most_at_once,
        a_minute=config.openai_most_a_minute,
    )


def provider_of(conversation: Conversation) -> ProviderSpec:
    """Where the model of a conversation is served: the one that its person chose, or the bud's.

    Needs the bud's `provider` loaded.

    Raises:
        ProviderSwitchedOff: as in `provider_for`; no other model stands in for the one that was chosen.
    """
    return provider_for(_asked(conversation.bud, conversation.chosen_model))


def provider_of_turn(turn: Turn) -> ProviderSpec:
    """The same for one answer, which another bud or model may have been asked for.

    Raises:
        ProviderSwitchedOff: as above.
    """
    return provider_for(_asked(turn.answering_bud, turn.chosen_model or _chosen_beside(turn)))


def known_provider(conversation: Conversation, mentioned: Bud | None = None) -> ProviderSpec | None:
    """The same as far as it is known without asking anybody; for use in a transaction.

    Args:
        mentioned: the bud that answers in place of the conversation's.
    """
    if mentioned is not None:
        asked = mentioned
    else:
        asked = _asked(conversation.bud, conversation.chosen_model)
    is_known = asked.provider is not None or platform_provider.cache_info().currsize
    with suppress(ProviderSwitchedOff):
        return provider_for(asked) if is_known else None
    return None


def _chosen_beside(turn: Turn) -> ProviderModel | None:
    """The conversation's model; it was chosen in place of the model of the conversation's bud, and of no other's."""
    return None if turn.mentioned_bud_id else turn.conversation.chosen_model


def _asked(bud: Bud, chosen: ProviderModel | None) -> Bud:
    """The bud, or a nameless one with the chosen model: of it nothing else is asked for."""
    if chosen is None or bud.is_model_fixed:
        return bud
    return Bud(workspace_id=chosen.workspace_id, provider=chosen.provider, model=chosen.model)


def model_of(bud: Bud) -> tuple[str, bool]:
    """The name of a bud's model, and whether it is the demo model."""
    if bud.provider is not None:
        return bud.model or bud.provider.default_model, False
    spec = provider_for(bud)
    return spec.model, spec.is_demo


@functools.cache
def platform_provider() -> ProviderSpec:
    """The platform's model: what the owner configured, else a local Ollama, else the demo model."""
    config = settings.TRELLIS
    key = config.openai_api_key.get_secret_value() if config.openai_api_key else None
    if key or config.openai_base_url:
        return ProviderSpec(
            name="OpenAI" if not config.openai_base_url else "Platform",
            base_url=config.openai_base_url or "https://api.openai.com/v1",
            model=config.openai_model or OPENAI_MODEL,
            api_key=Secret(key) if key else None,
            is_platforms=True,
        )
    model = config.openai_model or _first_ollama_model(config.ollama_url)
    if config.ollama_url and model:
        return ProviderSpec(
            name="Ollama", base_url=config.ollama_url, model=model, is_platforms=True
        )
    return ProviderSpec(
        name="Demo", base_url=f"{DEMO_ORIGIN}/v1", model=DEMO_MODEL, is_demo=True, is_platforms=True
    )


@dataclass(slots=True)
class _Clients:
    """What one loop thread holds; a restarted thread needs connections of its own."""

    runtime: runtime.Runtime
    models: OrderedDict[tuple[str, str, bool], ModelClient] = field(default_factory=OrderedDict)
    http: dict[bool, httpx2.AsyncClient] = field(default_factory=dict)


def model_client(spec: ProviderSpec) -> ModelClient:
    """The client for an endpoint; call it on the loop thread.

    Raises:
        ProviderKeyUnreadable: as in `reveal_key`.
    """
    # A second of imports, which commands that ask no model need not wait for; servers load it when they start.
    from chat.providers.openai_compatible import OpenAICompatible

    key = spec.reveal_key("model client")
    identity = (spec.base_url, hashlib.sha256(key.encode()).hexdigest(), spec.is_platforms)
    held = _held_clients()
    client = held.models.get(identity)
    if client is None:
        client = held.models[identity] = OpenAICompatible(spec, _http(held, spec.is_platforms))
        if len(held.models) > _MOST_CLIENTS:
            held.models.popitem(last=False)
    held.models.move_to_end(identity)
    return client


_held: _Clients | None = None


def _held_clients() -> _Clients:
    global _held
    now = runtime.current()
    if _held is None or _held.runtime is not now:
        _held = _Clients(now)
    return _held


def networks_of(spec: ProviderSpec) -> Sequence[IPv4Network | IPv6Network] | None:
    """Private networks where an endpoint may be; None: those that the owner's setting allows."""
    return _ANYWHERE if spec.is_platforms else None


def _http(held: _Clients, is_platforms: bool) -> httpx2.AsyncClient:
    client = held.http.get(is_platforms)
    if client is None:
        # An answer may take minutes; the reader's own deadlines say when it has stalled.
        client = held.http[is_platforms] = outbound.client(
            bounds=outbound.Bounds(total_seconds=None, stream_bytes=None, idle_seconds=None),
            networks=_ANYWHERE if is_platforms else None,
            mounts={DEMO_ORIGIN: demo_transport()} if is_platforms else None,
        )
    return client


def _first_ollama_model(url: str | None) -> str | None:
    """The first model of a local Ollama, if one answers at once."""
    if not url:
        return None

    async def ask() -> str | None:
        bounds = outbound.Bounds(connect_seconds=_PROBE_SECONDS, total_seconds=_PROBE_SECONDS)
        async with outbound.client(bounds=bounds, networks=_ANYWHERE) as client:
            try:
                answer = await client.get(f"{url}/models")
                models = answer.json()["data"]
                return str(models[0]["id"]) if models else None
            except (httpx2.HTTPError, ValueError, LookupError, TypeError):
                return None

    return runtime.run_sync(ask(), timeout_seconds=2 * _PROBE_SECONDS + 1)
