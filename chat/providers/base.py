"""What the turn engine asks of a model, whoever serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from chat.providers.echoed_fields import EchoedFields
from chat.providers.errors import ProviderKeyUnreadable
from workspaces.secrets import Secret, SecretUnreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One request: OpenAI's Chat Completions form."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[str] = ()
    """Each as JSON, since most are the same in every request."""
    tool_choice: str | Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_patient: bool = True
    """Whether a provider that fails or asks for a pause is asked again."""
    reasons: bool | None = None
    """Whether the model thinks before it answers; None: nobody has said."""
    silent_seconds: float | None = None
    """How long the provider may send nothing at all before it is given up; None: for as long as any other."""

    @property
    def has_pictures(self) -> bool:
        """Whether a message has parts: what is not all text has pictures."""
        return any(isinstance(message.get("content"), list) for message in self.messages)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some more of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """Some more of what the model thinks before it speaks."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """What one request cost in tokens, as the provider counts them."""

    prompt: int = 0
    cached: int = 0
    """Of the prompt's: those that came out of the provider's cache."""
    completion: int = 0
    is_estimate: bool = False
    """The provider has not told, so this is what it probably was."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthLimit:
    """What may be used in a calendar month; None: no limit, 0: nothing."""

    cost: Decimal | None = None
    tokens: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether there is no limit at all."""
        return self.cost is None and self.tokens is None


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call in the model's own words; the arguments may be broken JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The whole answer, as its last event."""

    text: str
    calls: tuple[AskedCall, ...]
    finish_reason: str
    """One of `finish_reasons`' words."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""
    blocks: tuple[str, ...] = ()
    """The text that the calls were found in, where the model can only write."""
    echoed_fields: EchoedFields | None = None
    """What goes back with it in later requests; None: nothing."""
    ignored_events: int = 0
    """Events of kinds that no answer is made of; nothing was done with them."""

    @property
    def usage(self) -> TokenCount:
        """What it cost."""
        return TokenCount(
            prompt=self.prompt_tokens,
            cached=self.cached_tokens,
            completion=self.completion_tokens,
        )


Piece = TextPiece | ReasoningPiece | TokenCount
"""What comes before the whole: counts too, so that they are known if it breaks off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """What texts mean, as one model's vectors: one for each text, in their order, all of one length."""

    vectors: Sequence[Sequence[float]]
    tokens: int = 0
    """What it cost, as the provider counts; 0: it does not say."""


class ModelClient(Protocol):
    """A model that can be asked."""

    def stream(self, request: CompletionRequest) -> AsyncIterator[Piece | Completion]:
        """Answer piece by piece, and at last with the whole.

        Raises:
            ProviderError: in all its kinds.
        """
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> Embeddings:
        """Ask once for vectors of texts. The caller says how long it waits.

        Raises:
            ProviderError: in all its kinds.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLimits:
    """How many requests a provider gets: a workspace's own from it, the platform's from all; None: as many as there are."""

    workspace_id: UUID
    """Who asks."""
    provider_id: UUID | None
    """None: the platform's own."""
    shared_id: UUID | None = None
    """The platform's row behind it, whose limits are those of all workspaces together."""
    name: str
    at_once: int | None
    a_minute: int | None
    is_part: bool = False
    """Whether they are what the platform's owner lets this workspace have of a shared provider."""
    at_once_here: int | None = None
    a_minute_here: int | None = None
    """Such a part, where the provider has limits for all workspaces together, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """Where a bud's model is served."""

    name: str
    base_url: str
    model: str
    api_key: Secret | None = None
    provider_id: UUID | None = None
    """None: the platform's own, or a key that is only tried."""
    workspace_id: UUID | None = None
    """Whose provider it is; None as above."""
    shared_id: UUID | None = None
    """The platform's row with its address and key, which workspaces never see."""
    is_demo: bool = False
    is_platforms: bool = False
    """Chosen by the platform's owner, whose word also allows private addresses."""
    has_fallback: bool = False
    """Another provider answers where this one fails."""
    limits: ProviderLimits | None = None
    """None: requests are sent at once."""
    month_limit: MonthLimit = field(default_factory=MonthLimit)
    """What the platform's owner lets the workspace use of a shared provider."""

    @property
    def recipient(self) -> str:
        """Names the model at this address, for what goes back to it alone."""
        return sha256(f"{self.base_url}\n{self.model}".encode()).hexdigest()[:16]

    def reveal_key(self, purpose: str) -> str:
        """The API key; empty where there is none.

        Raises:
            ProviderKeyUnreadable: it was sealed with an encryption key that is gone.
        """
        try:
            return self.api_key.reveal(purpose) if self.api_key else ""
        except SecretUnreadable as error:
            raise ProviderKeyUnreadable from error

    def address(self, path: str) -> str:
        """Where one kind of request goes. A query of the endpoint, such as Azure's `api-version`, stays at the end."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))
