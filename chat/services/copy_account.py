"""What a copy of somebody's data holds beside their chats: settings, buds, shares, permissions. Never a secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

from django.utils.translation import gettext as _

from chat.importing.trellis_zip import FORMAT, MANIFEST
from chat.models import Bud, DataCopy, Draft, Folder, Pin, ReminderChoice, SharedChat, Turn
from chat.services.bud_yaml import write_bud
from chat.services.copy_archive import ArchivePart
from chat.services.permissions import given_permissions, permissions_of
from chat.wire.payloads import moment
from mcp_servers.endpoint.sign_in.listing import own_sign_ins
from mcp_servers.models import McpServer, OAuthGrant
from workspaces.models import User
from workspaces.people.pictures import MIME_TYPE, own_picture
from workspaces.redaction import redact, redact_text
from workspaces.words.formats import day_in_utc

_VERSION: Final = 1
_MOST: Final = 10_000
"""Rows of each kind; more than people make by hand."""


def write_beginning(part: ArchivePart, copy: DataCopy) -> None:
    """What each part begins with, and the first one with all that is no chat. Needs `owner` and `workspace` loaded."""
    at = copy.created_at
    manifest = {
        "format": FORMAT,
        "version": _VERSION,
        "part": part.number,
        "workspace": copy.workspace.name,
        "asked_at": moment(at),
        "with_files": copy.with_files,
    }
    part.add_json(MANIFEST, manifest, at)
    part.add_text("README.md", [_readme(part, copy)], at)
    if part.number > 1:
        return
    for name, value in _settings(copy):
        part.add_json(f"account/{name}.json", redact(value, workspace_id=copy.workspace_id), at)
    for name, text in _buds(copy):
        part.add_text(
            f"account/buds/{name}.yaml", [redact_text(text, workspace_id=copy.workspace_id)], at
        )


def _readme(part: ArchivePart, copy: DataCopy) -> str:
    workspace = copy.workspace.name
    day = day_in_utc(copy.created_at)
    files = (
        _(
            "`files` beside it holds the files of the chat, with all their versions. If they are very large, some are in the next part, in a folder of the same name."
        )
        if copy.with_files
        else _("You asked for a copy without files, so their names are all that is here.")
    )
    lines = [
        f"# {_('Your data from %(workspace)s') % {'workspace': workspace}}",
        _("You asked Trellis for this copy on %(day)s. This is part %(number)s.")
        % {"day": day, "number": part.number},
        f"## {_('What is in it')}",
        _(
            "`chats` has a folder for each chat that you have, and for temporary ones that have not ended. Its name begins with the day on which the chat began."
        ),
        _(
            "- `chat.md` is the chat as you see it in Trellis. Open it in any editor.\n- `chat.json` has all its branches, for programs."
        ),
        files,
        _(
            "`account` is in the first part: your folders, drafts, pins and settings, ratings that you gave, buds that are yours, chats that you share, tools that you always allow, accounts that you connected, and MCP clients that you signed in with."
        ),
        f"## {_('What is not in it')}",
        _(
            "- Passwords, keys and links to shared chats. What looks like a secret in a text is masked.\n- Chats and files that you have deleted.\n- What belongs to others: their buds, chats and files. What you copied from a chat that someone shared is yours.\n- What you read in Trellis: your entries in the audit log under “My activity”, what your questions used under “Usage”, your sessions and your API tokens in your settings. Entries stay in the log for as long as the workspace keeps it, also after you leave."
        ),
        f"## {_('Bring it back')}",
        _(
            "In Trellis, open your settings and then “Import chats”. Choose one part after the other. Chats come back with their branches, folders and files. None comes twice. Tool calls stay in this copy."
        ),
    ]
    return "\n\n".join(lines) + "\n"


def _settings(copy: DataCopy) -> Iterator[tuple[str, Any]]:
    person = copy.owner
    yield (
        "profile",
        {
            "email": person.email,
            "name": person.name,
            "picture": _picture(person),
            "theme": person.theme,
            "time_zone": person.time_zone,
            "date_format": person.date_format,
            "clock": person.clock,
            "number_format": person.number_format,
            "shortcuts": person.shortcuts,
        },
    )
    yield "folders", [{"name": one.name, "colour": one.colour} for one in _own(Folder, copy)]
    drafts = (
        _own(Draft, copy)
        .exclude(text="", attachments=[])
        .exclude(conversation__deleted_at__isnull=False)
    )
    yield (
        "drafts",
        [
            {
                "chat": str(one.conversation_id) if one.conversation_id else None,
                "text": one.text,
                "attachments": [kept["title"] for kept in one.attachments],
                "written_at": moment(one.written_at),
            }
            for one in drafts
        ],
    )
    yield "pins", list(_pins(copy))
    yield "reminders", [_reminder(one) for one in _own(ReminderChoice, copy)]
    yield "ratings", list(_ratings(copy))
    yield "shared-chats", [_share(one) for one in _shares(copy)]
    yield "tool-permissions", list(_permissions(copy))
    yield "connections", list(_connections(copy))
    yield "mcp-clients", list(_mcp_clients(copy))


def _picture(person: User) -> str | None:
    """As a `data:` address, which any browser opens."""
    content = own_picture(person)
    if content is None:
        return None
    return f"data:{MIME_TYPE};base64,{base64.b64encode(content).decode()}"


def _own(model: Any, copy: DataCopy) -> Any:
    rows = model.objects.for_workspace(copy.workspace_id).filter(owner=copy.owner)
    return rows.order_by("pk")[:_MOST] if model is not Draft else rows.order_by("pk")


def _pins(copy: DataCopy) -> Iterator[dict[str, Any]]:
    for one in Pin.objects.for_workspace(copy.workspace_id).filter(owner=copy.owner)[:_MOST]:
        is_seen = one.bud_id is None or (
            Bud.objects.for_workspace(copy.workspace_id).visible_to(copy.owner).find(one.bud_id)
        )
        if is_seen:
            yield {"bud": one.bud.name if one.bud else None, "model": one.model or None}


def _reminder(one: ReminderChoice) -> dict[str, Any]:
    return {
        "mail_me_what_waits_after_minutes": one.mail_after,
        "mail_me_answers_after_minutes": one.answers_after,
        "quiet_from": str(one.quiet_from) if one.quiet_from else None,
        "quiet_to": str(one.quiet_to) if one.quiet_to else None,
        "time_zone": one.time_zone,
    }


def _ratings(copy: DataCopy) -> Iterator[dict[str, Any]]:
    """What the person thought of answers, in their words."""
    rows = Turn.objects.for_workspace(copy.workspace_id).filter(
        conversation__owner=copy.owner, conversation__deleted_at=None
    )
    for one in rows.exclude(rating="").order_by("pk")[:_MOST]:
        yield {
            "chat": str(one.conversation_id),
            "question": str(one.user_message_id),
            "rating": one.rating,
            "reason": one.rating_reason or None,
            "given_at": moment(one.rated_at),
        }


def _shares(copy: DataCopy) -> Any:
    rows = SharedChat.objects.for_workspace(copy.workspace_id).filter(
        owner=copy.owner, conversation__deleted_at=None
    )
    return rows.select_related("conversation").prefetch_related("readers")[:_MOST]


def _share(one: SharedChat) -> dict[str, Any]:
    return {
        "chat": str(one.conversation_id),
        "title": one.conversation.title,
        "audience": one.audience,
        "people": len(one.readers.all()),
        "with_files": one.with_files,
        "with_tool_calls": one.with_calls,
        "shared_at": moment(one.shared_at),
        "ends_at": moment(one.expires_at),
    }


def _permissions(copy: DataCopy) -> Iterator[dict[str, Any]]:
    rows = list(permissions_of(copy.workspace, copy.owner)[:_MOST])
    for one in given_permissions(copy.workspace, copy.owner, rows):
        yield {
            "server": one.row.tool.server.name,
            "tool": one.tool,
            "only_in_chat": str(one.row.conversation_id) if one.row.conversation_id else None,
            "given_at": moment(one.row.created_at),
        }


def _connections(copy: DataCopy) -> Iterator[dict[str, Any]]:
    """Accounts and own servers by their names: addresses and tokens may let others in."""
    grants = OAuthGrant.objects.for_workspace(copy.workspace_id).filter(user=copy.owner)
    for grant in grants.select_related("server")[:_MOST]:
        yield {
            "server": grant.server.name,
            "account": grant.account or None,
            "connected_at": moment(grant.granted_at),
        }
    servers = McpServer.objects.for_workspace(copy.workspace_id).filter(owner=copy.owner)
    for server in servers.order_by("name")[:_MOST]:
        yield {"own_server": server.name, "added_at": moment(server.created_at)}


def _mcp_clients(copy: DataCopy) -> Iterator[dict[str, Any]]:
    """Programs that the person let in, without their tokens."""
    for one in own_sign_ins(copy.workspace, copy.owner)[:_MOST]:
        yield {
            "name": one.client_name,
            "scopes": one.scopes,
            "returns_to": one.redirect_host,
            "let_in_at": moment(one.created_at),
            "last_used_at": moment(one.last_used_at) if one.last_used_at else None,
        }


def _buds(copy: DataCopy) -> Iterator[tuple[str, str]]:
    """Buds that are the person's own, as the bud's page gives them."""
    rows = Bud.objects.for_workspace(copy.workspace_id).filter(owner=copy.owner, is_draft=False)
    for bud in rows.select_related("provider").order_by("pk")[:_MOST]:
        yield bud.slug, write_bud(bud)
