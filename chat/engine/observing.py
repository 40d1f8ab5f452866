"""Turns and model requests as spans, by the conventions for GenAI; log lines of a turn carry its id. No content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workspaces.process.tracing import Span, SpanKind, bound, span

if TYPE_CHECKING:
    from chat.engine.leases import Lease
    from chat.engine.step_task import StepTask
    from chat.providers.base import Completion


@contextmanager
def turn_observed(lease: Lease) -> Iterator[Span]:
    """Around the work on a turn by one process."""
    ids = bound(turn_id=lease.turn_id, workspace_id=lease.workspace_id)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": str(lease.conversation_id),
        "trellis.turn.id": str(lease.turn_id),
        "trellis.workspace.id": str(lease.workspace_id),
    }
    with ids, span("invoke_agent", attributes=attributes) as current:
        yield current


@contextmanager
def request_observed(task: StepTask) -> Iterator[Span]:
    """Around one request to a model."""
    attributes: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": task.provider.model,
        "trellis.step": task.step,
    }
    with span(
        f"chat {task.provider.model}", kind=SpanKind.CLIENT, attributes=attributes
    ) as current:
        yield current


def note_completion(current: Span, completion: Completion) -> None:
    """What the provider counted, and why it ended."""
    current.set_attribute("gen_ai.usage.input_tokens", completion.prompt_tokens)
    current.set_attribute("gen_ai.usage.output_tokens", completion.completion_tokens)
    if completion.finish_reason:
        current.set_attribute("gen_ai.response.finish_reasons", [completion.finish_reason])
