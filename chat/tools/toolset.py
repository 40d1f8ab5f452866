"""Which tools a turn may use, by what names. Two queries, and one more where there are call rules; the rest is pure.

servers = the bud's + the conversation's additional ones + required ones, as far as they may be used;
tools   = callable ones, within the bud's `available_tools`, minus what either switched off, and what call rules block.
An id from elsewhere is told and never used.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any
from uuid import UUID

from django.db.models import Func, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Bud, Conversation
from chat.tools.builtin.files import OF_KNOWLEDGE, SPECS, TRANSFERS, BuiltinSpec
from chat.tools.builtin.on_demand import SPECS as ON_DEMAND
from chat.tools.missing_tools import missing_tools
from chat.tools.offered import OfferedTool, ServerInstructions
from chat.tools.usable_servers import ChatSetting
from chat.values import (
    McpConfig,
    McpConfigOverrides,
    NamedToolChoice,
    ToolChoice,
    ToolExposure,
)
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.tool_names import NamedTool, name_tools
from mcp_servers.client.values import ToolAnnotations
from mcp_servers.models import McpTool
from mcp_servers.registry.consent import call_rules
from mcp_servers.registry.consent.call_rules import PersonRules
from mcp_servers.registry.discovery import shown_to
from mcp_servers.registry.scopes.effective import EffectiveServer, usable_ids
from workspaces.database.prepared import PreparedRows

NOBODY = UUID(int=0)
MOST_INSTRUCTIONS = 2_000
"""Characters of one server's own instructions that the model reads."""

_MOST_LOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """All that one turn may call."""

    tools: tuple[OfferedTool, ...] = ()
    """What the model is told of."""
    on_demand: tuple[OfferedTool, ...] = ()
    """What it may look up, and call by name through a built-in tool."""
    blocked: tuple[OfferedTool, ...] = ()
    """What it is not told of, because a call rule blocks each call. One that it makes after all, the gate refuses with the reason."""
    tool_choice: ToolChoice = "auto"
    notices: tuple[str, ...] = ()
    """What is wrong with the configuration, in words for the person."""
    by_name: dict[str, OfferedTool] = field(default_factory=dict)
    instructions: tuple[ServerInstructions, ...] = ()
    notes_on_demand: tuple[ServerInstructions, ...] = ()
    """The same, read with a server's tools instead of with every request."""
    forces_every_step: bool = False

    @property
    def of_servers(self) -> tuple[OfferedTool, ...]:
        """All tools of servers that the turn may use, however the model hears of them."""
        tools = (tool for tool in self.tools if tool.server_id is not None)
        return self.on_demand or tuple(tools)

    def find(self, name: str, *, in_words: bool = False) -> OfferedTool | None:
        """The tool that a model calls by this name.

        Args:
            in_words: its own name, or `server.tool`, will do as well, if it means one tool alone.
        """
        found = self.by_name.get(name)
        if found is None and in_words:
            meant = self.meant_by(name)
            found = meant[0] if len(meant) == 1 else None
        return found

    def meant_by(self, name: str) -> tuple[OfferedTool, ...]:
        """Those of the offered tools that people call so; to the letter, for what only looks alike is another tool."""
        return tuple(tool for tool in self.tools if name in (tool.full_name, tool.tool_name))

    def withheld_from(self, model: str) -> Toolset:
        """What is left for a model that calls no tools: nothing, and a word of it where there was something to call."""
        if not self.of_servers:
            return Toolset(notices=self.notices)
        notice = _("%(model)s does not call tools, so it is not offered the tools of this bud.")
        return Toolset(notices=(*self.notices, notice % {"model": model}))

    def choice_for_step(self, step: int) -> str | dict[str, Any] | None:
        """`tool_choice` as the API wants it for this step of a turn; None when nothing is offered.

        What is forced is forced in the first step: in every one the model could never say that it is done.
        """
        if not self.tools:
            return None
        choice = self.tool_choice
        if step and not self.forces_every_step and choice != "none":
            return "auto"
        if isinstance(choice, NamedToolChoice):
            tool = _named(choice, self.tools)
            if tool is None:
                return "auto"
            return {"type": "function", "function": {"name": tool.function_name}}
        return choice


def _named(choice: NamedToolChoice, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The tool that a choice names, in any of the forms that people and models know it by."""
    wanted = choice.function.name
    known = (
        tool for tool in tools if wanted in (tool.full_name, tool.tool_name, tool.function_name)
    )
    return next(known, None)


def resolve_toolset(bud: Bud, conversation: Conversation | None) -> Toolset:
    """The tools that a turn of this conversation may use now.

    Raises:
        InvalidInput: a stored configuration does not fit its schema.
    """
    config = bud.mcp
    if conversation is not None:
        setting = ChatSetting.of(conversation, bud)
    else:
        setting = ChatSetting(bud=bud, user_id=None, overrides=McpConfigOverrides())
    overrides, servers = setting.overrides, setting.servers()
    choice = overrides.tool_choice or config.tool_choice or "auto"
    if not servers:
        tools = built_in_tools(bud, [], conversation)
        lost = _lost_tools(bud.workspace_id, config, [])
        notices = (*lost, *_notices([], choice, tools))
        return _toolset(tools, choice, config, notices=notices)
    usable = usable_ids(servers)
    person = setting.user_id or NOBODY
    asked = (bud.workspace_id, person, *usable)
    if not usable:
        found = _Offered()
    elif config.tool_exposure is ToolExposure.ON_DEMAND:
        found = _kept_offered(asked, config, overrides, servers)
    else:
        found = _offered(_callable_tools(len(usable)).all(*asked), config, overrides, asked)
    offered = found.tools
    built_in = built_in_tools(bud, offered, conversation)
    lost = _lost_tools(bud.workspace_id, config, found.here)
    notices = (*lost, *_notices(servers, choice, [*offered, *built_in]))
    instructions = tuple(_instructions(servers))
    if config.tool_exposure is ToolExposure.ON_DEMAND and offered:
        # One that has to be called has to be told of.
        forced = _named(choice, offered) if isinstance(choice, NamedToolChoice) else None
        tools = [*([forced] if forced else []), *(_built_in(spec) for spec in ON_DEMAND), *built_in]
        return _toolset(
            tools,
            choice,
            config,
            notices=notices,
            on_demand=offered,
            blocked=found.blocked,
            notes_on_demand=instructions,
        )
    return _toolset(
        [*offered, *built_in],
        choice,
        config,
        notices=notices,
        blocked=found.blocked,
        instructions=instructions,
    )


@dataclass(frozen=True, slots=True)
class _Offered:
    """What servers offer to a turn, under the names that the model knows."""

    tools: tuple[OfferedTool, ...] = ()
    blocked: tuple[OfferedTool, ...] = ()
    here: frozenset[str] = frozenset()
    """All tools that may be called, chosen or not, in both forms in which a bud names them."""


def _offered(
    rows: Sequence[McpTool],
    config: McpConfig,
    overrides: McpConfigOverrides,
    asked: tuple[UUID, ...],
    rules: PersonRules | None = None,
) -> _Offered:
    """Sort the rows.

    Args:
        asked: begins with the workspace and the person.
        rules: the call rules that hold for them; None: they are read if the rows say that there are some.
    """
    chosen = select_tools(rows, config=config, overrides=overrides)
    if rules is None:
        rules = _rules_for(asked) if rows and rows[0].has_call_rules else PersonRules()
    names = name_tools(
        NamedTool(row.server_id, row.server.name, row.pk, row.name) for row in chosen
    )
    by_tool = {tool_id: name for name, tool_id in names.items()}
    blocked = {row.pk for row in chosen if rules.why_blocked(row)}
    return _Offered(
        tuple(_offer(row, by_tool[row.pk]) for row in chosen if row.pk not in blocked),
        tuple(_offer(row, by_tool[row.pk]) for row in chosen if row.pk in blocked),
        frozenset(one for row in rows for one in (f"{row.server_id}.{row.name}", str(row.pk))),
    )


_MOST_KEPT = 4
_kept: OrderedDict[str, _Offered] = OrderedDict()
"""The large sets of tools that this process offered last, by all that makes them what they are."""
_kept_lock = Lock()


def _kept_offered(
    asked: tuple[UUID, ...],
    config: McpConfig,
    overrides: McpConfigOverrides,
    servers: Sequence[EffectiveServer],
) -> _Offered:
    """The same for thousands of tools that are looked up: read again only if one of them is another one now."""
    count = len(asked) - 2
    [(mark, has_rules)] = _tools_mark(count).all_values(*asked)
    rules = _rules_for(asked) if has_rules else PersonRules()
    parts: list[Any] = [config.model_dump_json(), overrides.model_dump_json(), rules]
    parts += [
        (one.server.name, one.server.trusts_annotations)
        for one in servers
        if one.server is not None
    ]
    key = hashlib.blake2b(f"{parts} {mark}".encode()).hexdigest()
    with _kept_lock:
        found = _kept.pop(key, None)
    if found is None:
        found = _offered(_callable_tools(count).all(*asked), config, overrides, asked, rules)
    with _kept_lock:
        _kept[key] = found
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found


@lru_cache(maxsize=64)
def _callable_tools(count: int) -> PreparedRows[McpTool]:
    """The statement for so many servers."""

    def build(*values: UUID) -> Any:
        rows = _callable(*values).annotate(has_call_rules=call_rules.are_on(values[0]))
        return rows.select_related("server").order_by("server__name", "name")

    return PreparedRows(build, *[UUID] * (count + 2))


class _Mark(Func):
    """One value for all rows, which is another one if one of them is: the database makes it, and no row is sent."""

    output_field = TextField()
    # Hexadecimal ids and hashes of fixed length need nothing between them. SQLite's order is that of the index: if it
    # ever is another one, the tools are read once more.
    template = "group_concat(%(expressions)s, '')"
    arg_joiner = " || "

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Hash it there, in the order of ids."""
        mark = "md5(string_agg(%(expressions)s, '' ORDER BY %(expressions)s))"
        return self.as_sql(compiler, connection, template=mark, **context)


@lru_cache(maxsize=64)
def _tools_mark(count: int) -> PreparedRows[McpTool]:
    """Ids and definitions of the same tools, as one value."""

    def build(*values: UUID) -> Any:
        mark = _Mark(Cast("pk", TextField()), "definition_hash")
        rows = _callable(*values).order_by()
        return rows.values_list(mark, call_rules.are_on(values[0]))

    return PreparedRows(build, *[UUID] * (count + 2))


def _callable(workspace_id: UUID, user_id: UUID, *server_ids: UUID) -> Any:
    rows = McpTool.objects.for_workspace(workspace_id).callable()
    return rows.filter(shown_to(user_id), server_id__in=server_ids)


def _rules_for(asked: tuple[UUID, ...]) -> PersonRules:
    workspace_id, person, *_servers = asked
    return call_rules.rules_for(workspace_id, person)


def built_in_tools(
    bud: Bud, others: Sequence[OfferedTool], conversation: Conversation | None
) -> list[OfferedTool]:
    """The platform's own tools for files.

    A bud that makes files is offered all of them: those that move files only where there is a tool to move them to. Any
    other bud may read the files that a conversation has, and its own. Only a bud with files of its own searches them.
    """
    specs = [spec for spec in SPECS if bud.has_knowledge or spec.name.value not in OF_KNOWLEDGE]
    if not bud.makes_artifacts:
        has_files = conversation is not None and conversation.has_files
        reads = bud.has_knowledge or has_files
        return [_built_in(spec) for spec in specs if spec.only_reads] if reads else []
    return [_built_in(spec) for spec in specs if others or spec.name.value not in TRANSFERS]


def _built_in(spec: BuiltinSpec) -> OfferedTool:
    return OfferedTool(
        function_name=spec.name.value,
        server_id=None,
        server_name="",
        tool_id=None,
        tool_name=spec.name.value,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input_schema,
        annotations=spec.annotations,
        definition_hash="",
        builtin=spec.name.value,
    )


def _toolset(
    tools: Sequence[OfferedTool],
    choice: ToolChoice,
    config: McpConfig,
    blocked: tuple[OfferedTool, ...] = (),
    **more: Any,
) -> Toolset:
    return Toolset(
        tools=tuple(tools),
        tool_choice=choice,
        blocked=blocked,
        by_name={tool.function_name: tool for tool in (*blocked, *tools)},
        forces_every_step=config.tool_choice_every_step,
        **more,
    )


def select_tools(
    rows: Sequence[McpTool], *, config: McpConfig, overrides: McpConfigOverrides
) -> list[McpTool]:
    """Keep what the bud names, minus what bud or conversation switched off."""
    allowed = set(config.available_tools) if config.available_tools is not None else None
    refused = {*config.disabled_tools, *overrides.disabled_tools}
    return [
        row
        for row in rows
        if (allowed is None or _is_named(row, allowed)) and not _is_named(row, refused)
    ]


def _lost_tools(workspace_id: UUID, config: McpConfig, here: Collection[str]) -> list[str]:
    """What to tell of tools that the bud offers by name and that are gone."""
    unseen = [name for name in config.available_tools or () if name not in here]
    return [
        _("This bud's tool “%(name)s” no longer exists.") % {"name": name}
        for name in (missing_tools(workspace_id, unseen) if unseen else [])[:_MOST_LOST]
    ]


def _is_named(row: McpTool, names: Collection[str]) -> bool:
    return f"{row.server_id}.{row.name}" in names or str(row.pk) in names


def _offer(row: McpTool, function_name: str) -> OfferedTool:
    return OfferedTool(
        function_name=function_name,
        server_id=row.server_id,
        server_name=row.server.name,
        tool_id=row.pk,
        tool_name=row.name,
        title=row.title,
        description=row.description,
        input_schema=row.input_schema,
        annotations={
            **ToolAnnotations.from_wire(row.annotations).as_json(),
            "is_trusted": row.server.trusts_annotations,
        },
        definition_hash=row.definition_hash,
    )


def _notices(
    servers: Sequence[EffectiveServer], choice: ToolChoice, tools: Sequence[OfferedTool]
) -> list[str]:
    notices = []
    strangers = [one for one in servers if one.code == "unknown"]
    if strangers:
        notices.append(
            ngettext(
                "A server of this bud no longer exists in this workspace.",
                "%(count)s servers of this bud no longer exist in this workspace.",
                len(strangers),
            )
            % {"count": len(strangers)}
        )
    asleep = sorted(one.label for one in servers if one.code == "off")
    if asleep:
        notices.append(_("Switched off: %(asleep)s.") % {"asleep": ", ".join(asleep)})
    unused: dict[str, list[str]] = {}
    for one in servers:
        if not one.is_usable and one.code not in ("unknown", "off", "off_here"):
            unused.setdefault(one.reason, []).append(one.label)
    notices += [
        ngettext(
            "%(labels)s is not used: %(reason)s",
            "Not used: %(labels)s. For each: %(reason)s",
            len(labels),
        )
        % {"labels": ", ".join(labels), "reason": reason}
        for reason, labels in unused.items()
    ]
    if isinstance(choice, NamedToolChoice) and _named(choice, tools) is None:
        notices.append(
            _("The tool “%(name)s” is required but not available.") % {"name": choice.function.name}
        )
    if choice == "required" and not tools:
        notices.append(_("A tool is required, but none is available."))
    return notices


def _instructions(servers: Sequence[EffectiveServer]) -> list[ServerInstructions]:
    """What servers say about their own use, where an administrator lets the model read it."""
    return [
        ServerInstructions(one.label, text, one.server.pk)
        for one in servers
        if one.is_usable and one.server is not None and one.server.uses_instructions
        if (text := strip_hidden(one.server.state.instructions).strip()[:MOST_INSTRUCTIONS])
    ]
