"""Tools, resources and prompts as pages show them: nothing hidden, nothing loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_servers.client.diffs import PartDiff, diff_definitions
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.values import Effect, ToolAnnotations
from mcp_servers.models import McpPrompt, McpResource, McpTool
from mcp_servers.registry.consent import policy
from mcp_servers.registry.services.tools import may_keep_results
from workspaces.words.formats import whole

_EFFECT_LABELS: Final = {
    Effect.AUTO: gettext_lazy("Runs by itself"),
    Effect.CONFIRM: gettext_lazy("Asks first"),
    Effect.DENY: gettext_lazy("Blocked"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One word on a tool."""

    tone: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool. Its texts are the server's, with hidden characters written out."""

    id: UUID
    name: str
    title: str
    description: str
    is_enabled: bool
    approval_override: str
    default_label: str
    policy_label: str
    badges: tuple[Badge, ...]
    state: str
    """ok, new, changed, removed or excluded."""
    problem: str
    unchecked: str
    """Why nobody checks what it returns; empty where Trellis does."""
    warnings: tuple[str, ...]
    renamed_from: str
    diff: tuple[PartDiff, ...]
    """What changed since it was accepted."""
    definition_hash: str
    may_keep_results: bool
    cache_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """One resource, template or prompt."""

    id: UUID
    kind: str
    """resource, template or prompt."""
    name: str
    title: str
    address: str
    description: str
    facts: str
    is_enabled: bool
    is_watched: bool


def badges_of(annotations: ToolAnnotations) -> tuple[Badge, ...]:
    """What a server says about a tool, as words for people."""
    found: list[Badge] = []
    if annotations.destructive is True:
        found.append(Badge(tone="bad", label=_("Destructive")))
    if annotations.read_only is True:
        found.append(Badge(tone="ok", label=_("Read-only")))
    elif annotations.destructive is not True:
        known = annotations.read_only is not None or annotations.destructive is not None
        label = _("Changes data") if known else _("Says nothing about its effects")
        found.append(Badge(tone="warn", label=label))
    if annotations.idempotent is True and annotations.read_only is not True:
        found.append(Badge(tone="info", label=_("Repeatable")))
    if annotations.open_world is True:
        found.append(Badge(tone="info", label=_("Reaches outside")))
    return tuple(found)


def tool_row(tool: McpTool) -> ToolRow:
    """One tool for a page."""
    # How the tool would run if it were switched on and accepted, which is what the choice is about.
    usable = replace(
        tool.facts(),
        is_server_active=True,
        is_enabled=True,
        is_removed=False,
        is_quarantined=False,
        problem="",
    )
    state = _state(tool)
    badges = badges_of(tool.typed_annotations)
    if tool.task_support == "required":
        badges = (*badges, Badge(tone="info", label=_("Runs as a task")))
    return ToolRow(
        id=tool.pk,
        name=show_hidden(tool.name),
        title=show_hidden(tool.title),
        description=show_hidden(tool.description),
        is_enabled=tool.is_enabled,
        approval_override=tool.approval_override,
        default_label=str(_EFFECT_LABELS[policy.decide(replace(usable, override=None)).effect]),
        policy_label=str(_EFFECT_LABELS[policy.decide(usable).effect]),
        badges=badges,
        state=state,
        problem=_problem(tool, state),
        unchecked="" if state in ("removed", "excluded") else unchecked_results(tool),
        warnings=tuple(str(warning) for warning in tool.warnings),
        renamed_from=show_hidden(tool.renamed_from) if tool.is_quarantined else "",
        diff=diff_definitions(tool.approved_definition, tool.definition)
        if tool.is_quarantined and tool.approved_definition and state != "removed"
        else (),
        definition_hash=tool.definition_hash,
        may_keep_results=may_keep_results(tool),
        cache_seconds=tool.cache_seconds,
    )


def unchecked_results(tool: McpTool) -> str:
    """That Trellis does not check what a tool returns, and why; empty where it does, or where nothing is promised."""
    if not tool.output_problem:
        return ""
    return _("Trellis does not check this tool's structured results: %(problem)s") % {
        "problem": show_hidden(tool.output_problem)
    }


def offer_of(row: McpResource | McpPrompt) -> OfferRow:
    """One resource, template or prompt for a page."""
    if isinstance(row, McpPrompt):
        names = [
            _("%(name)s (required)") % argument if argument["required"] else argument["name"]
            for argument in row.arguments
        ]
        text = _("Takes %(names)s") % {"names": ", ".join(names)} if names else _("Takes nothing")
        return OfferRow(
            id=row.pk,
            kind="prompt",
            name=show_hidden(row.name),
            title=show_hidden(row.title),
            address="",
            description=show_hidden(row.description),
            facts=show_hidden(text),
            is_enabled=row.is_enabled,
            is_watched=False,
        )
    size = _("%(size)s bytes") % {"size": whole(row.size)} if row.size is not None else ""
    return OfferRow(
        id=row.pk,
        kind="template" if row.is_template else "resource",
        name=show_hidden(row.name),
        title=show_hidden(row.title),
        address=show_hidden(row.uri),
        description=show_hidden(row.description),
        facts=show_hidden(" · ".join(filter(None, [row.mime_type, size]))),
        is_enabled=row.is_enabled,
        is_watched=row.is_watched,
    )


def _state(tool: McpTool) -> str:
    if tool.is_removed:
        return "removed"
    if tool.problem:
        return "excluded"
    if not tool.is_quarantined:
        return "ok"
    return "changed" if tool.approved_hash else "new"


def _problem(tool: McpTool, state: str) -> str:
    if state == "excluded":
        return _("This tool is left out: %(problem)s") % {"problem": tool.problem}
    if state == "removed":
        return _("The server no longer offers this tool.")
    if state == "changed":
        return _(
            "The server changed what this tool is. It rests until somebody accepts the new definition."
        )
    if state == "new" and tool.renamed_from:
        return _("This is a tool under another name. It rests until somebody accepts it.")
    if state == "new":
        return _("This tool is new. It rests until somebody accepts it.")
    return ""
