"""Buds, conversations, turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from mcp_servers.models import InputRequest
    from mcp_servers.sampling import SamplingResult, SamplingTask


class ChatConfig(AppConfig):
    name = "chat"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from mcp_servers.elicitation import register_listener
        from mcp_servers.sampling import register_model

        register_model(_ask_model)
        register_listener(_tell_of_input)


def _tell_of_input(row: InputRequest) -> None:
    from chat.services.inputs import tell_of_input

    tell_of_input(row)


async def _ask_model(task: SamplingTask) -> SamplingResult:
    # The providers are loaded with the first request, not with the first command.
    from chat.sampling import ask_model

    return await ask_model(task)
