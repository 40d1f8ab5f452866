"""Reading the files that people bring along, in the background: one chat after the other, each whole or not at all.

The row says how far a file is read, so any process goes on where another one stopped, and a chat is stored once.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.services import EntryDraft, record
from chat.artifacts import storage
from chat.artifacts.errors import ContentMissing
from chat.engine.beginning import title_from
from chat.importing.reading import MOST_CHATS, RawChat, Unreadable, chats_in, texts_of
from chat.importing.values import ImportedChat, LeftOut
from chat.models import OPEN_IMPORTS, ChatImport, Conversation, Message
from chat.services.imports import tell
from chat.values import ORIGIN, ImportStatus, MessageOrigin, MessageStatus, TitleSource
from workspaces.actors import Source
from workspaces.database import database_now
from workspaces.database.prepared_writes import insert, update_if_there
from workspaces.formats import written_for
from workspaces.middleware import actor_for
from workspaces.models import Membership

logger = logging.getLogger(__name__)

MOST_REASONS: Final = 200
"""Chats that were left out of which the row says why."""
RUN_SECONDS: Final = 12.0
"""Less than between two runs: other tasks wait for the same workers."""
_TURN_SECONDS: Final = 6.0
"""For one file, if others wait."""
_LEASE: Final = timedelta(seconds=180)
_TELL_SECONDS: Final = 2.0
FORGOTTEN_DAYS: Final = 30
"""After that, an import of which nothing is left is forgotten."""


def read_due(seconds: float = RUN_SECONDS) -> int:
    """Read files of all people in turn, until nothing is due or the time is up; gives how many chats were looked at."""
    until = time.monotonic() + seconds
    looked_at = 0
    while time.monotonic() < until and (row := _take_on()) is not None:
        try:
            with written_for(row.owner):
                looked_at += _go_on(row, min(until, time.monotonic() + _TURN_SECONDS))
        except Unreadable as error:
            _end(row, error=str(error))
        except ContentMissing:
            _end(row, error=_("The file is no longer there. Choose it again."))
        except Exception:
            # One file must not keep those of others from being read.
            logger.exception("chats_not_imported", extra={"import": str(row.pk)})
            _end(row, error=_("Trellis could not read it. The platform's log says why."))
    return looked_at


def forget_old() -> int:
    """Forget imports of which nothing is left; gives how many."""
    oldest = database_now() - timedelta(days=FORGOTTEN_DAYS)
    rows = ChatImport.objects.across_workspaces().filter(finished_at__lt=oldest)
    chats = Conversation.objects.across_workspaces().filter(chat_import=OuterRef("pk"))
    forgotten: int = rows.filter(~Exists(chats)).delete()[0]
    return forgotten


def _take_on() -> ChatImport | None:
    """An import that nobody works on, of somebody who is a member and may use the chat."""
    now = database_now()
    members = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"),
        user_id=OuterRef("owner_id"),
        user__is_active=True,
        workspace__is_active=True,
    )
    is_free = Q(alive_until=None) | Q(alive_until__lt=now)
    rows = ChatImport.objects.across_workspaces().filter(
        is_free, Exists(members), status__in=OPEN_IMPORTS
    )
    for row in rows.select_related("owner", "workspace", "bud").order_by("updated_at")[:5]:
        mine = ChatImport.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
        lease = now + _LEASE
        # Whoever moves the time reads it.
        if mine.filter(alive_until=row.alive_until, status__in=OPEN_IMPORTS).update(
            alive_until=lease, status=ImportStatus.RUNNING.value
        ):
            row.alive_until, row.status = lease, ImportStatus.RUNNING.value
            return row
    return None


def _go_on(row: ChatImport, until: float) -> int:
    texts = texts_of(storage.read(row.path))
    if not row.total:
        _count(row, texts)
    told_at = time.monotonic()
    looked_at = 0
    for place, raw in enumerate(_all_of(texts)):
        if place < row.position:
            continue
        if not _take(row, raw):
            return looked_at  # it was ended, or another process has it
        looked_at += 1
        now = time.monotonic()
        if now - told_at > _TELL_SECONDS:
            told_at = now
            tell(row)
        if now > until:
            break
    if row.position >= row.total:
        _end(row)
    else:
        row.alive_until = None
        row.save(update_fields=["alive_until", "updated_at"])
    return looked_at


def _all_of(texts: list[str]) -> Iterator[RawChat]:
    for text in texts:
        yield from chats_in(text)


def _count(row: ChatImport, texts: list[str]) -> None:
    """Read it through once, so that nothing comes of a file that is damaged further on."""
    total, source = 0, None
    for raw in _all_of(texts):
        total += 1
        source = source or raw.source
        if total > MOST_CHATS:
            raise Unreadable(_("It holds more than %(most)s chats.") % {"most": MOST_CHATS})
    if source is None:
        raise Unreadable(
            _(
                "It holds no chats that Trellis can read. Choose an export of Trellis, ChatGPT or Claude."
            )
        )
    row.total, row.origin = total, source.value
    row.save(update_fields=["total", "origin", "updated_at"])


def _take(row: ChatImport, raw: RawChat) -> bool:
    """Look at the next chat, and store it if it can be imported; False if the row is no longer this process's."""
    chat, why = None, ""
    try:
        chat = raw.read()  # before the transaction, in which others wait
    except LeftOut as error:
        why = str(error)
    rows = ChatImport.objects.for_workspace(row.workspace_id).select_for_update(of=("self",))
    mine = rows.filter(pk=row.pk, alive_until=row.alive_until, status=ImportStatus.RUNNING.value)
    with transaction.atomic():
        if not mine.exists():
            return False
        try:
            if chat is not None:
                row.messages += _store(row, raw, chat)
                row.imported += 1
        except LeftOut as error:
            why = str(error)
        if why:
            row.left_out += 1
            if len(row.reasons) < MOST_REASONS:
                title = raw.title or _("Chat without a title")
                row.reasons = [*row.reasons, {"title": title, "reason": why}]
        row.position += 1
        row.alive_until = database_now() + _LEASE
        row.save()
    return True


def _store(row: ChatImport, raw: RawChat, chat: ImportedChat) -> int:
    """Store one chat; gives how many messages it has.

    Raises:
        LeftOut: it is too old to be kept, or is here already.
    """
    now = database_now()
    moments = _moments(chat, now)
    last = max(moments)
    days = settings.TRELLIS.idle_conversation_days
    if days is not None and last < now - timedelta(days=days):
        raise LeftOut(
            _("It is older than the %(days)s days that chats are kept here.") % {"days": days}
        )
    client_id = _client_id(row, raw, chat)
    _check_is_new(row, chat, client_id)
    first = next(iter(chat.messages)).text
    new = Conversation(
        workspace_id=row.workspace_id,
        owner_id=row.owner_id,
        bud_id=row.bud_id,
        title=chat.title or title_from(first),
        title_source=(TitleSource.PERSON if chat.title else TitleSource.MESSAGE).value,
        client_id=client_id,
        chat_import=row,
    )
    new.save(force_insert=True)
    ids = {one.key: uuid7() for one in chat.messages}
    messages = [
        Message(
            id=ids[one.key],
            workspace_id=row.workspace_id,
            conversation=new,
            parent_id=ids[one.parent] if one.parent is not None else None,
            role=one.role.value,
            text=one.text,
            status=MessageStatus.COMPLETE.value,
            order_key=place,
            json_meta={ORIGIN: MessageOrigin.FILE.value},
        )
        for place, one in enumerate(chat.messages, start=1)
    ]
    insert(messages)
    # They keep their times, which storing sets to now.
    for message, moment in zip(messages, moments, strict=True):
        message.created_at = moment
        update_if_there(message, ["created_at"])
    new.leaf_id = ids[chat.leaf]
    new.created_at = min(chat.began_at or moments[0], now)
    new.last_message_at = last
    update_if_there(new, ["leaf", "created_at", "last_message_at"])
    return len(messages)


def _moments(chat: ImportedChat, now: datetime) -> list[datetime]:
    """When each message was said: as the file says, else as the one before it; nothing in the time to come."""
    before = min(chat.began_at or now, now)
    found = []
    for one in chat.messages:
        before = min(one.at or before, now)
        found.append(before)
    return found


def _client_id(row: ChatImport, raw: RawChat, chat: ImportedChat) -> str:
    """The same for the same chat, so that it is stored once however often its file comes."""
    source = raw.source.value if raw.source else ""
    named = f"{row.workspace_id}\n{source}\n{chat.key}".encode(errors="surrogatepass")
    return f"imported-{hashlib.sha256(named).hexdigest()[:48]}"


def _check_is_new(row: ChatImport, chat: ImportedChat, client_id: str) -> None:
    mine = Conversation.objects.for_workspace(row.workspace_id).filter(owner_id=row.owner_id)
    is_it = Q(client_id=client_id)
    if (own := _as_id(chat.key)) is not None:
        is_it |= Q(pk=own)
    for deleted_at in mine.filter(is_it).values_list("deleted_at", flat=True):
        if deleted_at is not None:
            raise LeftOut(_("You have deleted it here. Restore it under “Recently deleted”."))
        raise LeftOut(_("You have it already."))


def _as_id(key: str) -> Any:
    """The id of a conversation of this installation, if it is one."""
    try:
        return Conversation._meta.pk.to_python(key)
    except ValidationError:
        return None


def _end(row: ChatImport, *, error: str = "") -> None:
    """Note that the file is read, or cannot be, and enter it in the log. Nobody needs the file any more."""
    actor = actor_for(row.owner, row.workspace, source=Source.TASK)
    with transaction.atomic():
        mine = ChatImport.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
        status = ImportStatus.FAILED if error else ImportStatus.DONE
        if not mine.filter(status__in=OPEN_IMPORTS).update(
            status=status.value, error=error, finished_at=database_now(), alive_until=None, path=""
        ):
            return
        counts = {"imported": row.imported, "left_out": row.left_out, "messages": row.messages}
        record(
            EntryDraft(
                action=Action.CHATS_IMPORTED,
                actor=actor,
                workspace_id=row.workspace_id,
                details={"import": str(row.pk), "from": row.origin, "error": error, **counts},
            )
        )
        tell(row)
        transaction.on_commit(partial(storage.drop, [row.path]))
