"""What a model answered in one step, with the calls that it proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chat.providers.base import TokenCount
from chat.providers.echoed_fields import EchoedFields
from chat.providers.spending import Bill
from chat.tools.offered import OfferedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """A tool call as the model worded it, looked up in what it was offered."""

    provider_call_id: str
    function_name: str
    """The tool's name in the request; as the model wrote it where there is no such tool."""
    arguments_text: str
    """As the model wrote them."""
    arguments: Mapping[str, Any] | None
    """None: the text is no JSON object."""
    tool: OfferedTool | None
    """None: no such tool was offered."""
    target: OfferedTool | None = None
    """The server's tool that a built-in one is to call in its place."""
    is_broken: bool = False
    """The arguments of a known tool could not be read."""
    error: str = ""
    """Why it cannot be run at all, in words for the model."""
    sent: str = ""
    """The arguments as they came, readable or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredStep:
    """An answer of the model, whole or as far as it came."""

    text: str
    reasoning: str = ""
    echoed_fields: EchoedFields | None = None
    """What goes back to the model with its calls."""
    recipient: str = ""
    """Who that model is."""
    usage: TokenCount = field(default_factory=TokenCount)
    bill: Bill | None = None
    """Who pays for it, and by which prices."""
    work_ms: int = 0
    model: str = ""
    proposals: Sequence[ProposedCall] = ()
    blocks: Sequence[str] = ()
    """In which the model wrote them down, if it can only write."""
    estimated_tokens: int = 0
    """What its prompt was believed to be; beside the provider's count it sets later estimates right."""
    context_used: int = 0
    context_limit: int | None = None
    notice: str = ""
    """What the person should know of how it ended."""
    is_cut: bool = False
    """It became as long as the model may write at once; it can go on from there."""
    untrusted_source: str = ""
    """What the model has read from outside, as a clause; empty: nothing."""
    noted: Mapping[str, Any] = field(default_factory=dict)
    """What its row keeps of a path that the model's window does not hold."""
    wants_summary: bool = False
    """What is older should be summarised before the next question."""
    too_long: int = 0
    """The model could not read this much, as it was estimated."""
