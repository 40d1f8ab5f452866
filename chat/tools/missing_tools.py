"""Find the tools that a bud's configuration names and that do not exist: when it is saved, and when they are gone later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from django.utils.translation import gettext as _

from chat.models import Bud
from chat.values import BuiltinTool, McpConfig, NamedToolChoice
from mcp_servers.client.tool_names import NamedTool, name_tools
from mcp_servers.models import McpServer, McpTool
from workspaces.words.text_values import is_id

_MOST_TOLD = 10


def missing_tools(workspace_id: UUID, names: Iterable[str]) -> list[str]:
    """Those of these names that no shared server of the workspace has a tool for, as people know them."""
    return list(lost_tools(workspace_id, names).values())


def lost_tools(workspace_id: UUID, names: Iterable[str]) -> dict[str, str]:
    """The same, each by its name in the configuration.

    Of a server that has not told its tools yet, such as one that waits for a sign-in, nobody can say what it lacks.
    """
    wanted = list(dict.fromkeys(names))
    servers = _servers_of(workspace_id) if wanted else {}
    known = _known_of(workspace_id, wanted, servers)
    missing = [name for name in wanted if name not in known]
    silent = _silent_among(
        workspace_id, {name.partition(".")[0] for name in missing} & set(servers)
    )
    removed = (name for name in missing if name.partition(".")[0] not in silent)
    return {name: _tool_in_words(name, servers) for name in removed}


def silent_servers(workspace_id: UUID) -> frozenset[str]:
    """The names of shared servers that have not told any tool yet."""
    servers = _servers_of(workspace_id)
    return frozenset(servers[pk] for pk in _silent_among(workspace_id, servers))


def _silent_among(workspace_id: UUID, server_ids: Collection[str]) -> frozenset[str]:
    if not server_ids:
        return frozenset()
    tools = McpTool.objects.for_workspace(workspace_id)
    tools = tools.filter(server_id__in=[UUID(pk) for pk in server_ids])
    known_servers = {
        str(pk) for pk in tools.order_by().values_list("server_id", flat=True).distinct()
    }
    return frozenset(server_ids) - known_servers


def known_tools(workspace_id: UUID, names: Iterable[str]) -> list[str]:
    """Those of these names that a shared server of the workspace has a tool for."""
    wanted = list(dict.fromkeys(names))
    known = _known_of(workspace_id, wanted, _servers_of(workspace_id) if wanted else {})
    return [name for name in wanted if name in known]


def _servers_of(workspace_id: UUID) -> dict[str, str]:
    rows = McpServer.objects.for_workspace(workspace_id).shared()
    return {str(pk): name for pk, name in rows.values_list("pk", "name")}


def _known_of(
    workspace_id: UUID, wanted: Sequence[str], servers: Mapping[str, str]
) -> frozenset[str]:
    if not wanted:
        return frozenset()
    of_servers = [UUID(pk) for pk in {name.partition(".")[0] for name in wanted} & set(servers)]
    ids = [name for name in wanted if is_id(name)]
    tools = McpTool.objects.for_workspace(workspace_id).offered()
    by_name = tools.filter(server_id__in=of_servers).values_list("server_id", "name")
    by_id = tools.filter(pk__in=ids, server_id__in=[UUID(pk) for pk in servers])
    return frozenset(f"{server}.{name}" for server, name in by_name) | {
        str(pk) for pk in by_id.values_list("pk", flat=True)
    }


def find_faults(bud: Bud) -> list[str]:
    """What is wrong with the tools that a bud's configuration names, each in a sentence."""
    config = bud.mcp
    missing = missing_tools(
        bud.workspace_id, [*(config.available_tools or ()), *config.disabled_tools]
    )
    faults = [
        _("There is no tool “%(name)s”. Remove it, or name one that exists.") % {"name": name}
        for name in missing
    ]
    choice = config.tool_choice
    if isinstance(choice, NamedToolChoice) and not can_be_chosen(choice.function.name, bud, config):
        faults.append(
            _(
                "There is no tool “%(name)s” among those of this bud's servers. Choose another tool, or add its server."
            )
            % {"name": choice.function.name}
        )
    return faults[:_MOST_TOLD]


def can_be_chosen(name: str, bud: Bud, config: McpConfig) -> bool:
    """Whether a bud with this configuration could be told to use the tool of this name."""
    if name in {builtin.value for builtin in BuiltinTool}:
        return True
    tools = McpTool.objects.for_workspace(bud.workspace_id).offered().select_related("server")
    rows = tools.filter(server_id__in=config.servers) | tools.filter(
        server__global_server__is_required=True
    )
    named = [NamedTool(row.server_id, row.server.name, row.pk, row.name) for row in rows]
    known = {row.name for row in rows} | {f"{row.server.name}.{row.name}" for row in rows}
    if name in known or name in name_tools(named):
        return True
    return bool(_silent_among(bud.workspace_id, {str(pk) for pk in config.servers}))


def _tool_in_words(name: str, servers: dict[str, str]) -> str:
    server, _, tool = name.partition(".")
    return f"{servers[server]}.{tool}" if server in servers and tool else name[:200]
