"""The model's side of sampling: a server's own words in, the model's out; no conversation, no tools."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import Any

from audit.services import Ref
from chat.models import Bud, Conversation, ModelProvider
from chat.providers import model_requests
from chat.providers.base import Completion, CompletionRequest, ProviderSpec
from chat.providers.choosing import platform_model, provider_for
from chat.providers.errors import ProviderBadAnswer
from chat.providers.known_models import known_facts
from chat.providers.shared import switched_off
from chat.providers.specs import spec_of
from chat.providers.spending import Bill, Payer, allowance_for
from mcp_servers.client.connections import runtime
from mcp_servers.models import InputRequest, McpServer
from mcp_servers.registry.sampling import SamplingResult, SamplingTask
from workspaces.actors import Actor, Source
from workspaces.database import in_database
from workspaces.errors import DomainError

_STOP_REASONS = {"length": "maxTokens", "stop": "endTurn"}


async def ask_model(task: SamplingTask) -> SamplingResult:
    """Have the chosen model answer a server.

    Raises:
        ProviderError: no model answers, in all its kinds.
        NotFound: the provider or the bud is gone.
    """
    spec, reasons, bill = await in_database(_asked_of, task)
    # Clients live on the loop thread, whoever asks.
    return await runtime.run(_answer(spec, task, reasons, bill))


def model_for(row: InputRequest) -> str:
    """The name of the model that would answer a server's request, for the person who allows it; empty if none would."""
    server = McpServer.objects.for_workspace(row.workspace_id).find(row.server_id)
    conversations = Conversation.objects.for_workspace(row.workspace_id)
    conversation = conversations.find(row.conversation_id) if row.conversation_id else None
    if server is None:
        return ""
    task = SamplingTask(
        workspace_id=row.workspace_id,
        server_id=server.pk,
        server_name=server.name,
        bud=Ref(id=conversation.bud_id, name="") if conversation is not None else None,
        provider_id=server.sampling_provider_id,
        model=server.sampling_model,
        messages=(),
    )
    try:
        return _spec_of(task).model
    except DomainError:
        return ""


def _asked_of(task: SamplingTask) -> tuple[ProviderSpec, bool | None, Bill]:
    """Where the model is served, whether it reasons, and who pays."""
    spec = _spec_of(task)
    facts = known_facts(task.workspace_id, spec)
    payer = _payer(task)
    return spec, facts.reasons, Bill.of(allowance_for(payer, spec), spec, facts.prices)


def _payer(task: SamplingTask) -> Payer:
    system = Actor.system(label="sampling", source=Source.TASK, workspace_id=task.workspace_id)
    return Payer(
        workspace_id=task.workspace_id,
        person_id=task.actor.user_id if task.actor is not None else None,
        actor=task.actor or system,
        purpose=f"sampling for {task.server_name}",
        bud=task.bud,
        conversation_id=task.conversation_id,
        turn_id=task.turn_id,
    )


async def _answer(
    spec: ProviderSpec, task: SamplingTask, reasons: bool | None, bill: Bill
) -> SamplingResult:
    request = replace(request_of(spec.model, task), reasons=reasons)
    async with aclosing(model_requests.stream_and_count(spec, request, bill)) as answer:
        async for piece in answer:
            if isinstance(piece, Completion):
                return SamplingResult(
                    text=piece.text,
                    model=spec.model,
                    stop_reason=_STOP_REASONS.get(piece.finish_reason, "endTurn"),
                    tokens=piece.prompt_tokens + piece.completion_tokens,
                )
    raise ProviderBadAnswer


def request_of(model: str, task: SamplingTask) -> CompletionRequest:
    """What is sent: the server's messages under its own system prompt, and nothing of ours. Pure."""
    system = [{"role": "system", "content": task.system_prompt}] if task.system_prompt else []
    messages = [{"role": message.role, "content": message.text} for message in task.messages]
    parameters: dict[str, Any] = {"max_tokens": task.max_tokens}
    if task.temperature is not None:
        parameters["temperature"] = task.temperature
    if task.stop_sequences:
        parameters["stop"] = list(task.stop_sequences)
    return CompletionRequest(model=model, messages=[*system, *messages], parameters=parameters)


def _spec_of(task: SamplingTask) -> ProviderSpec:
    if task.provider_id is not None:
        provider = ModelProvider.objects.for_workspace(task.workspace_id).fetch(task.provider_id)
        if not provider.answers:
            raise switched_off(provider)
        return spec_of(provider, task.model)
    if task.bud is None or task.bud.id is None:
        return platform_model(task.workspace_id, task.model)
    buds = Bud.objects.for_workspace(task.workspace_id).select_related("provider")
    bud = buds.fetch(task.bud.id)
    bud.model = task.model or bud.model
    return provider_for(bud)
