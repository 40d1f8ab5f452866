"""What values of a bud name that is gone by now: left out, so that an earlier version or a copy can be had all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from chat.models import Bud, ModelProvider
from chat.services.buds import offered_servers
from chat.tools.missing_tools import can_be_chosen, lost_tools
from chat.values import McpConfig, NamedToolChoice, parse_value

_MOST_TOLD = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableValues:
    """Values that can be saved now."""

    values: dict[str, Any]
    provider_id: UUID | None
    left_out: tuple[str, ...]
    """What they do not hold any more, each in a sentence."""


def without_gone(bud: Bud, values: dict[str, Any], provider_id: UUID | None) -> UsableValues:
    """Leave out of a bud's values the servers and tools that are gone. For a provider that is, the bud's present one stays.

    Raises:
        InvalidInput: what is stored fits its schema no more.
    """
    found, notes = dict(values), []
    providers = ModelProvider.objects.for_workspace(bud.workspace_id)
    if provider_id is not None and providers.find(provider_id) is None:
        provider_id, found["model"] = bud.provider_id, bud.model
        notes.append(_("Its model provider was deleted, so the bud keeps the model that it has."))
    if found.get("mcp_config"):
        config, lost = _without_lost(bud, found["mcp_config"])
        notes += lost
        if lost:
            found["mcp_config"] = config.model_dump(mode="json", exclude_defaults=True)
    return UsableValues(values=found, provider_id=provider_id, left_out=tuple(notes))


def _without_lost(bud: Bud, raw: Any) -> tuple[McpConfig, list[str]]:
    config = parse_value(McpConfig, raw, field="mcp_config")
    notes: list[str] = []
    known = set(
        offered_servers(bud.workspace_id)
        .filter(pk__in=config.servers)
        .order_by()
        .values_list("pk", flat=True)
    )
    servers = [pk for pk in config.servers if pk in known]
    if number := len(config.servers) - len(servers):
        notes.append(_("Servers that are gone were left out: %(number)s.") % {"number": number})
    lost = lost_tools(bud.workspace_id, [*(config.available_tools or ()), *config.disabled_tools])
    if lost:
        names = ", ".join(list(lost.values())[:_MOST_TOLD])
        notes.append(_("Tools that are gone were left out: %(names)s.") % {"names": names})
    changed: dict[str, Any] = {
        "servers": servers,
        "available_tools": None
        if config.available_tools is None
        else [name for name in config.available_tools if name not in lost],
        "disabled_tools": [name for name in config.disabled_tools if name not in lost],
    }
    kept = config.model_copy(update=changed)
    choice = kept.tool_choice
    if isinstance(choice, NamedToolChoice) and not can_be_chosen(choice.function.name, bud, kept):
        kept = kept.model_copy(update={"tool_choice": None})
        notes.append(
            _("The tool that it has to use is gone: %(name)s.") % {"name": choice.function.name}
        )
    return kept, notes
