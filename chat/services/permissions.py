"""What people allowed once and for all, as they read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _

from chat.models import Conversation
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.models import ToolPermission
from workspaces.models import User, Workspace
from workspaces.scoping import WorkspaceQuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPermission:
    """One tool that runs without asking, or asks each time."""

    row: ToolPermission
    tool: str
    """Its title, or its name; of a tool that runs actions by name, the one action."""
    conversation: str
    """Title of the one chat that it is for; "" where it is for all, or the chat has none."""
    reason: str
    """Why it has lapsed; "" while it stands."""


def permissions_of(workspace: Workspace, person: User) -> WorkspaceQuerySet[ToolPermission]:
    """What this person has allowed here."""
    rows = ToolPermission.objects.for_workspace(workspace).visible_to(person)
    return rows.select_related("tool__server", "workspace")


def given_permissions(
    workspace: Workspace, person: User, rows: Sequence[ToolPermission]
) -> list[GivenPermission]:
    """Put what they have allowed into words. Needs three statements at most."""
    titles = titles_of(workspace, person, (row.conversation_id for row in rows))
    return [
        GivenPermission(
            row=row,
            tool=tool_title(row) or show_hidden(row.tool.name),
            conversation=titles.get(row.conversation_id, "") if row.conversation_id else "",
            reason=why_lapsed(row),
        )
        for row in rows
    ]


def titles_of(workspace: Workspace, person: User, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Titles of the person's own chats among these."""
    mine = Conversation.objects.for_workspace(workspace).filter(owner=person)
    return dict(
        mine.filter(pk__in={one for one in ids if one is not None}).values_list("pk", "title")
    )


def tool_title(row: ToolPermission) -> str:
    """What the permission is for; "" for a tool without a title."""
    return show_hidden(row.action_label or row.tool.title)


def why_lapsed(row: ToolPermission) -> str:
    """Why the tool asks again; "" while the permission stands. What asks each time stands whatever changes."""
    if row.asks_always:
        return ""
    if row.definition_hash != row.tool.definition_hash:
        return _("The tool has changed since. It asks again.")
    if not row.workspace.remembers_permissions:
        return _("This workspace no longer remembers permissions.")
    return ""
