"""One socket per open page: reads a command, calls a service, sends events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from autobahn.exception import Disconnected
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils.translation import gettext as _

from chat.live.hub import PROCESS_ID, conversation_group
from chat.models import Conversation
from chat.services.offers import warm_up
from chat.sockets.following import Following
from chat.sockets.frames import MalformedFrame, check_frame, flood_frame, parse_frame
from chat.sockets.handlers import HANDLERS
from chat.sockets.open import give_place_back, sockets, take_place
from chat.sockets.rounds import PageCheck, Rounds, rounds
from chat.sockets.send_queue import SendQueue
from chat.sockets.socket_access import SocketAccess, why_shut_out
from chat.wire import commands
from chat.wire.events import (
    Accepted,
    CloseCode,
    CommandFailed,
    Current,
    Event,
    Pong,
    WorkspaceChanged,
    encode,
)
from mcp_servers.client.canonical import clean_text
from workspaces.database import in_database, is_unavailable
from workspaces.database.row_security import reach_of, set_reach
from workspaces.delivery.announcements import (
    SERVER_CHECKED,
    deafness,
    serve_from,
    user_group,
    workspace_group,
)
from workspaces.errors import Conflict, DomainError, InvalidInput, NotFound
from workspaces.process.shutdown import is_shutting_down
from workspaces.write_conflicts import as_conflict

logger = logging.getLogger(__name__)

MOST_CONVERSATIONS = 20
COMMANDS_PER_SECOND = 20.0
COMMAND_BURST = 60.0
MOST_FAULTS = 10
CHECK_SECONDS = 2.0
"""How often it is looked whether a page still reads."""


class WorkspaceConsumer(AsyncWebsocketConsumer):
    """A person's page in one workspace."""

    access: SocketAccess

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._send_queue = SendQueue()
        self._following = Following(self._send_queue)
        self._tasks: set[asyncio.Task[None]] = set()
        self._budget = COMMAND_BURST
        self._budget_at = 0.0
        self._faults = 0
        self._groups: set[str] = set()
        self._is_gone = False
        self._has_place_of: UUID | None = None
        self._rounds: Rounds | None = None
        self._newest: dict[UUID, int] = {}
        """The numbers that the round before has seen."""
        self._own_handlers: Mapping[type[Any], Callable[[Any], Awaitable[None]]] = {
            commands.Subscribe: self.subscribe,
            commands.Unsubscribe: self.unsubscribe,
            commands.Ping: self.ping,
            commands.Ack: self.ack,
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_unless_gone(message: Mapping[str, Any]) -> None:
            # Between the page's leaving and the news of it there is nobody to write to.
            try:
                await send(message)
            except Disconnected:
                if not self._is_gone:
                    self._is_gone = True
                    logger.info("socket_page_gone")

        try:
            await super().__call__(scope, receive, send_unless_gone)
        except Exception as error:
            if hasattr(self, "channel_name"):
                raise
            # The layer gave it none. Whatever one raises: the page comes again, and Redis is told of elsewhere.
            deafness.note(error)
            await send_unless_gone({"type": "websocket.accept"})
            await send_unless_gone(
                {"type": "websocket.close", "code": CloseCode.TRY_AGAIN_LATER.value}
            )
        finally:
            # However the socket ended, also by a fault of ours: nothing of it lives on.
            await self._tear_down()

    async def dispatch(self, message: Mapping[str, Any]) -> None:
        """Hand a message to its handler.

        Channels' own crosses into the one thread of all sockets first, to look after connections to the database.
        `in_database` does that where there are some.
        """
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        if is_shutting_down():
            await self.close(CloseCode.SERVICE_RESTART)
            return
        user = self.scope.get("user")
        if user is None or not user.is_authenticated or not self._is_of(user):
            await self.close(CloseCode.SIGN_IN_AGAIN)
            return
        if not take_place(user.pk):
            # Nothing was read for it, and nothing is kept: a script that asks again and again costs only that.
            logger.info("too_many_sockets", extra={"person": str(user.pk)})
            await self.close(CloseCode.TOO_MANY)
            return
        self._has_place_of = user.pk
        # Of this task, which serves this socket alone.
        set_reach(reach_of([], person=user.pk))
        try:
            self.access = await in_database(self._enter, user)
        except NotFound:
            slug = self.scope["url_route"]["kwargs"]["workspace_slug"]
            await self.close(await in_database(why_shut_out, user, slug))
            return
        set_reach(reach_of([self.access.workspace.pk], person=user.pk))
        serve_from(asyncio.get_running_loop())
        sockets.add(self)
        self._rounds = rounds()
        self._rounds.add(self)
        for group in (workspace_group(self.access.workspace.pk), user_group(user.pk)):
            await self._join(group)
        self._run(self._write())
        self._run(self._check_now_and_then())

    def _is_of(self, user: Any) -> bool:
        """Whether the page is this person's, if it says whose it is: another one may have signed in beside it since."""
        person_ids = self._query.get("person")
        return person_ids is None or person_ids == [str(user.pk)]

    @cached_property
    def _query(self) -> dict[str, list[str]]:
        """What the page says of itself in the socket's address."""
        return parse_qs(self.scope["query_string"].decode("ascii", "replace"))

    def _enter(self, user: Any) -> SocketAccess:
        client = self.scope.get("client")
        return SocketAccess(
            user,
            self.scope["url_route"]["kwargs"]["workspace_slug"],
            ip_address=str(client[0]) if client else None,
            session_key=self.scope["session"].session_key,
        )

    @property
    def conversation_ids(self) -> Collection[UUID]:
        """The conversations that the page follows."""
        return self._following.conversation_ids

    async def _tear_down(self) -> None:
        sockets.discard(self)
        if self._has_place_of is not None:
            give_place_back(self._has_place_of)
            self._has_place_of = None
        if self._rounds is not None:
            self._rounds.discard(self)
        for task in list(self._tasks):
            task.cancel()
        self._following.end_all()
        for group in self._groups:
            with contextlib.suppress(Exception):
                await self.channel_layer.group_discard(group, self.channel_name)

    # Commands

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "access"):
            return
        ref: str | None = None
        try:
            self._spend()
            content = parse_frame(text_data)
            if isinstance(content, dict) and isinstance(content.get("ref"), str):
                ref = clean_text(content["ref"][:64])
            check_frame(content)
            await self._handle(commands.parse_command(content))
            self._faults = 0
        except _Abuse:
            await self.send(flood_frame())
            await self.close(CloseCode.PROTOCOL_ABUSE)
        except MalformedFrame as fault:
            await self._tell_error("malformed", str(fault), None)
            await self.close(CloseCode.PROTOCOL_ABUSE)
        except DomainError as error:
            fields = error.fields if isinstance(error, InvalidInput) else None
            await self._tell_error(error.code, error.message, ref, fields)
            if isinstance(error, InvalidInput):
                self._faults += 1
                if self._faults > MOST_FAULTS:
                    await self.close(CloseCode.PROTOCOL_ABUSE)
        except Exception as error:
            if (conflict := as_conflict(error)) is not None:
                await self._tell_error(conflict.code, conflict.message, ref)
                return
            if is_unavailable(error):
                text = _("This is not possible at the moment. Please try again soon.")
                await self._tell_error("unavailable", text, ref)
                return
            logger.exception("socket_command_crashed")
            await self._tell_error("internal_error", _("Something went wrong on our side."), ref)

    async def _handle(self, command: commands.Command) -> None:
        own = self._own_handlers.get(type(command))
        if own is not None:
            await own(command)
            return
        answer = await in_database(HANDLERS[type(command)], self.access, command)
        self._push(Accepted(ref=command.ref, **answer))

    async def subscribe(self, command: commands.Subscribe) -> None:
        conversation = await in_database(self.access.conversation, command.conversation_id)
        following = self._following
        if conversation.pk not in following and len(following) >= MOST_CONVERSATIONS:
            raise InvalidInput(_("Too many conversations are open on this page."))
        following.begin(conversation.pk)
        await self._join(conversation_group(conversation.pk))
        is_streaming = await in_database(self.access.is_active, conversation)
        if command.seq == conversation.event_seq and not is_streaming:
            following.is_current(conversation.pk, conversation.event_seq)
            current = Current(
                ref=command.ref, conversation_id=conversation.pk, seq=conversation.event_seq
            )
            self._push(current)
            return
        if self._send_queue.is_clear:
            if not await following.send_snapshot(conversation, command.ref):
                raise NotFollowed
        else:
            # A snapshot for each question would pile up without end before a page that asks and does not read.
            following.ask_later(conversation.pk, command.ref)
        if command.seq is None:
            # Behind the snapshot: whoever opens a conversation is about to say something. Pages that come back, after
            # a restart all at once, are not.
            self._run(in_database(self._warm_up, conversation.pk))

    def _warm_up(self, conversation_id: UUID) -> None:
        rows = Conversation.objects.for_workspace(self.access.workspace).select_related("bud")
        try:
            warm_up(rows.fetch(conversation_id))
        except DomainError:
            logger.info("not_warmed_up", exc_info=True)

    async def unsubscribe(self, command: commands.Unsubscribe) -> None:
        await self._tell_not_followed(self._following.end(command.conversation_id))
        await self._leave(conversation_group(command.conversation_id))
        self._push(Accepted(ref=command.ref))

    async def ping(self, command: commands.Ping) -> None:
        self._push(Pong(ref=command.ref))

    async def ack(self, command: commands.Ack) -> None:
        self._send_queue.heard(command.number)

    # Events

    async def conversation_frames(self, message: Mapping[str, Any]) -> None:
        """From another process, by the channel layer."""
        if message["origin"] != PROCESS_ID:
            for frame, seq in message["frames"]:
                self._following.offer(UUID(message["conversation_id"]), frame, seq)

    async def workspace_changed(self, message: Mapping[str, Any]) -> None:
        """A nudge: look at something again. What concerns one person reaches their pages of every workspace."""
        is_wanted = message["kind"] != SERVER_CHECKED or self._query.get("checks") == ["yes"]
        if is_wanted and message["workspace_id"] == str(self.access.workspace.pk):
            self._push(WorkspaceChanged(kind=message["kind"], id=message["id"]))

    async def access_changed(self, message: Mapping[str, Any]) -> None:
        """Rights have changed: may this socket stay?"""
        await self._close_unless_welcome()

    def _push(self, event: Event) -> None:
        # What does not fit any more is an answer that nobody reads, or a nudge that the next snapshot makes needless.
        self._send_queue.push(encode(event.as_json()))

    async def _tell_error(
        self,
        code: str,
        message: str,
        ref: str | None,
        details: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        failed = CommandFailed(ref=ref, code=code, message=message, details=details or None)
        await self.send(encode(failed.as_json()))

    async def _tell_not_followed(self, refs: Iterable[str]) -> None:
        """Answer commands that waited for a snapshot of what the page has closed since."""
        for ref in refs:
            error = NotFollowed()
            await self._tell_error(error.code, error.message, ref)

    async def _write(self) -> None:
        """The one place that sends events, in order."""
        try:
            while True:
                await self._send_queue.wait()
                while (frame := self._send_queue.take()) is not None:
                    await self.send(frame)
                if self._following.stale and self._send_queue.is_clear:
                    # One at a time: a snapshot that nobody has room for would be dropped for the next one.
                    await self._heal(self._following.stale.pop())
                    self._send_queue.nudge()
        except Exception:
            # A socket that cannot be written to is of no use: the page opens another one.
            logger.exception("socket_writer_failed")
            await self.close(CloseCode.INTERNAL_ERROR)

    async def _heal(self, conversation_id: UUID) -> None:
        try:
            conversation = await in_database(self.access.conversation, conversation_id)
            await self._tell_not_followed(await self._following.heal(conversation))
        except DomainError as error:
            for ref in self._following.end(conversation_id):
                await self._tell_error(error.code, error.message, ref)

    async def _check_now_and_then(self) -> None:
        """Ends who does not listen."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self._send_queue.is_stalled:
                await self.close(CloseCode.TRY_AGAIN_LATER)
                return
            check = self._send_queue.check_now()
            if check is not None:
                await self.send(check)

    async def looked_after(self, seen: PageCheck) -> bool:
        """Heals what the channel layer lost, and ends what membership no longer allows; whether something may be missed."""
        if seen.reason_to_close is not None:
            await self.close(seen.reason_to_close)
            return False
        before, self._newest = self._newest, seen.newest
        return self._following.note_missed(seen.newest, before)

    async def _close_unless_welcome(self) -> None:
        code = await in_database(self.access.reason_to_close)
        if code is not None:
            await self.close(code)

    # Housekeeping

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, group: str) -> None:
        if group not in self._groups:
            self._groups.add(group)
            # Whatever a layer raises: Redis' own errors are no OSError. What is missed is healed from the rows.
            with contextlib.suppress(Exception):
                await self.channel_layer.group_add(group, self.channel_name)

    async def _leave(self, group: str) -> None:
        self._groups.discard(group)
        with contextlib.suppress(Exception):
            await self.channel_layer.group_discard(group, self.channel_name)

    def _spend(self) -> None:
        """A bucket of commands that refills with time."""
        now = asyncio.get_running_loop().time()
        refill = (now - self._budget_at) * COMMANDS_PER_SECOND
        self._budget = min(COMMAND_BURST, self._budget + refill) - 1
        self._budget_at = now
        if self._budget < 0:
            raise _Abuse


class NotFollowed(Conflict):
    """What a page asked for is not sent, since the page has closed it meanwhile."""

    def __init__(self) -> None:
        super().__init__(_("This page no longer follows the conversation."))


class _Abuse(Exception):
    """More messages than any page sends."""
