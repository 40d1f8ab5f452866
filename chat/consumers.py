"""One socket per open page: reads a command, calls a service, sends events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, cast
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare
from uuid_utils.compat import uuid7

from chat import commands
from chat.events import TextDelta, encode, utf16_length
from chat.hub import PROCESS_ID, conversation_group, hub
from chat.live import live_text
from chat.models import Conversation, ToolCall, Turn
from chat.models.turns import ACTIVE
from chat.services.approvals import decide
from chat.services.attachments import ResourceRef
from chat.services.inputs import answer_input
from chat.services.offers import warm_up
from chat.services.turns import retry_turn, send_message, stop_turn
from chat.snapshots import read_snapshot
from chat.values import Decision, MessageStatus, Remember
from mcp_servers.canonical import clean_text
from mcp_servers.models import InputRequest
from workspaces.actors import Actor, Source
from workspaces.announcements import serve_from, workspace_group
from workspaces.database import in_database
from workspaces.errors import DomainError, InvalidInput, NotFound, PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import Membership, User, Workspace
from workspaces.sessions import user_group

logger = logging.getLogger(__name__)

LARGEST_FRAME_BYTES = 64 * 1024
MOST_CONVERSATIONS = 20
MOST_FRAMES_WAITING = 1_000
COMMANDS_PER_SECOND = 20.0
COMMAND_BURST = 60.0
MOST_FAULTS = 10
CHECK_SECONDS = 2.0
"""How often membership and missed events are looked for."""

SIGN_IN_AGAIN = 4401
NOT_A_MEMBER = 4403
PROTOCOL_ABUSE = 1008
INTERNAL_ERROR = 1011


class WorkspaceConsumer(AsyncWebsocketConsumer):
    """A person's page in one workspace."""

    actor: Actor
    user: User
    workspace: Workspace

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._frames: deque[str] = deque()
        self._has_frames = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        # Conversation → number of the newest event told.
        self._watched: dict[UUID, int] = {}
        # Conversation → what has come while its snapshot is being read.
        self._held: dict[UUID, list[tuple[str, int]]] = {}
        self._resync: set[UUID] = set()
        self._budget = COMMAND_BURST
        self._budget_at = 0.0
        self._faults = 0
        self._groups: set[str] = set()
        self._handlers: Mapping[type[Any], Callable[[Any], Awaitable[None]]] = {
            commands.Subscribe: self.subscribe,
            commands.Unsubscribe: self.unsubscribe,
            commands.Send: self.send_text,
            commands.Stop: self.stop,
            commands.Retry: self.retry,
            commands.Decide: self.decide,
            commands.AnswerInput: self.answer_input,
            commands.Ping: self.ping,
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # However the socket ended, also by a fault of ours: nothing of it lives on.
            await self._tear_down()

    async def connect(self) -> None:
        await self.accept()
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(SIGN_IN_AGAIN)
            return
        self.user = user
        slug = self.scope["url_route"]["kwargs"]["workspace_slug"]
        try:
            self.workspace = await in_database(self._enter, slug)
        except NotFound:
            await self.close(NOT_A_MEMBER)
            return
        serve_from(asyncio.get_running_loop())
        for group in (workspace_group(self.workspace.pk), user_group(self.user.pk)):
            await self._join(group)
        self._run(self._write())
        self._run(self._check_now_and_then())

    def _enter(self, slug: str) -> Workspace:
        workspace = Workspace.objects.open_to(self.user).filter(slug=slug).first()
        if workspace is None:
            raise NotFound
        self._refresh_actor(workspace)
        return workspace

    def _refresh_actor(self, workspace: Workspace) -> None:
        client = self.scope.get("client")
        self.actor = actor_for(
            self.user,
            workspace,
            source=Source.CHAT,
            ip_address=str(client[0]) if client else None,
            request_id=str(uuid7()),
        )

    async def _tear_down(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for conversation_id in self._watched:
            hub.unwatch(conversation_id, self)
        for group in self._groups:
            with contextlib.suppress(Exception):
                await self.channel_layer.group_discard(group, self.channel_name)

    # Commands

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not hasattr(self, "actor"):
            return
        ref: str | None = None
        try:
            self._spend()
            content = _parse(text_data)
            if isinstance(content, dict) and isinstance(content.get("ref"), str):
                ref = clean_text(content["ref"][:64])
            command = commands.parse_command(content)
            await self._handlers[type(command)](command)
            self._faults = 0
        except _Abuse:
            await self._tell_error("rate_limited", "Too many messages.", None)
            await self.close(PROTOCOL_ABUSE)
        except _Malformed as fault:
            await self._tell_error("malformed", str(fault), None)
            await self.close(PROTOCOL_ABUSE)
        except DomainError as error:
            fields = error.fields if isinstance(error, InvalidInput) else None
            await self._tell_error(error.code, error.message, ref, fields)
            if isinstance(error, InvalidInput):
                self._faults += 1
                if self._faults > MOST_FAULTS:
                    await self.close(PROTOCOL_ABUSE)
        except Exception:
            logger.exception("socket_command_crashed")
            await self._tell_error("internal_error", "Something went wrong on our side.", ref)

    async def subscribe(self, command: commands.Subscribe) -> None:
        conversation = await in_database(self._conversation, command.conversation_id)
        if conversation.pk not in self._watched and len(self._watched) >= MOST_CONVERSATIONS:
            raise InvalidInput("Too many conversations are open on this page.")
        # Watched before it is read: what happens in between comes twice, and never not at all.
        self._watched.setdefault(conversation.pk, -1)
        hub.watch(conversation.pk, self, asyncio.get_running_loop())
        await self._join(conversation_group(conversation.pk))
        is_streaming = await in_database(self._is_active, conversation)
        if command.seq == conversation.event_seq and not is_streaming:
            self._watched[conversation.pk] = conversation.event_seq
            current = {
                "type": "current",
                "ref": command.ref,
                "conversation_id": str(conversation.pk),
                "seq": conversation.event_seq,
            }
            self._push(encode(current))
            return
        await self._send_snapshot(conversation, command.ref)
        # Behind the snapshot: whoever opens a conversation is about to say something.
        self._run(in_database(self._warm_up, conversation.pk))

    def _warm_up(self, conversation_id: UUID) -> None:
        rows = Conversation.objects.for_workspace(self.workspace).select_related("bud")
        try:
            warm_up(rows.fetch(conversation_id))
        except DomainError:
            logger.info("not_warmed_up", exc_info=True)

    async def unsubscribe(self, command: commands.Unsubscribe) -> None:
        self._watched.pop(command.conversation_id, None)
        hub.unwatch(command.conversation_id, self)
        await self._leave(conversation_group(command.conversation_id))
        self._accepted(command.ref)

    async def send_text(self, command: commands.Send) -> None:
        conversation = await in_database(self._conversation, command.conversation_id)
        sent = await in_database(
            send_message,
            conversation=conversation,
            client_id=command.client_id,
            text=command.text,
            attachments=[ResourceRef(**one.model_dump()) for one in command.attachments],
            actor=self.actor,
        )
        ids = {"message_id": str(sent.message.pk), "turn_id": str(sent.turn.pk)}
        self._accepted(command.ref, ids)

    async def stop(self, command: commands.Stop) -> None:
        turn = await in_database(self._turn, command.turn_id)
        await in_database(stop_turn, turn=turn, actor=self.actor)
        self._accepted(command.ref)

    async def retry(self, command: commands.Retry) -> None:
        turn = await in_database(self._turn, command.turn_id)
        await in_database(retry_turn, turn=turn, actor=self.actor)
        self._accepted(command.ref)

    async def decide(self, command: commands.Decide) -> None:
        call = await in_database(self._tool_call, command.tool_call_id)
        is_approval = command.decision == "approve"
        await in_database(
            decide,
            call=call,
            decision=Decision.APPROVED if is_approval else Decision.REFUSED,
            actor=self.actor,
            arguments=command.arguments if is_approval else None,
            note=command.note,
            remember=command.remember if is_approval else Remember.NOT,
        )
        self._accepted(command.ref)

    async def answer_input(self, command: commands.AnswerInput) -> None:
        request = await in_database(self._input_request, command.input_request_id)
        await in_database(
            answer_input,
            request=request,
            action=command.action,
            content=command.content,
            actor=self.actor,
        )
        self._accepted(command.ref)

    async def ping(self, command: commands.Ping) -> None:
        self._push(encode({"type": "pong", "ref": command.ref}))

    # Rows, each time through the tenant's door and with today's membership

    def _conversation(self, conversation_id: UUID) -> Conversation:
        self._require_member()
        rows = Conversation.objects.for_workspace(self.workspace).visible_to(self.user)
        return rows.filter(workspace=self.workspace).fetch(conversation_id)

    def _turn(self, turn_id: UUID) -> Turn:
        self._require_member()
        rows = Turn.objects.for_workspace(self.workspace).visible_to(self.user)
        return rows.filter(workspace=self.workspace).fetch(turn_id)

    def _tool_call(self, tool_call_id: UUID) -> ToolCall:
        self._require_member()
        rows = ToolCall.objects.for_workspace(self.workspace).visible_to(self.user)
        return rows.filter(workspace=self.workspace).fetch(tool_call_id)

    def _input_request(self, input_request_id: UUID) -> InputRequest:
        self._require_member()
        rows = InputRequest.objects.for_workspace(self.workspace).visible_to(self.user)
        return rows.filter(workspace=self.workspace).fetch(input_request_id)

    def _require_member(self) -> None:
        self._refresh_actor(self.workspace)
        if self.actor.role is None:
            raise PermissionDenied("You are no longer a member of this workspace.")

    def _is_active(self, conversation: Conversation) -> bool:
        turns = Turn.objects.for_workspace(self.workspace)
        return turns.filter(conversation=conversation, status__in=ACTIVE).exists()

    # Events

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """From the hub: one encoded event."""
        if conversation_id not in self._watched or conversation_id in self._resync:
            return
        held = self._held.get(conversation_id)
        if held is not None:
            # A snapshot is on its way: it holds the texts, and of the rows what comes before its number.
            if seq is not None:
                held.append((frame, seq))
            return
        if seq is not None:
            self._watched[conversation_id] = max(seq, self._watched[conversation_id])
        if len(self._frames) >= MOST_FRAMES_WAITING:
            # A slow reader is given a fresh snapshot instead of an endless queue.
            self._frames.clear()
            self._resync |= set(self._watched)
            self._has_frames.set()
            return
        self._push(frame)

    async def conversation_frames(self, message: Mapping[str, Any]) -> None:
        """From another process, by the channel layer."""
        if message["origin"] != PROCESS_ID:
            for frame, seq in message["frames"]:
                self.offer(UUID(message["conversation_id"]), frame, seq)

    async def workspace_changed(self, message: Mapping[str, Any]) -> None:
        """A nudge: look at something again."""
        if message.get("user_id") in (None, str(self.user.pk)):
            nudge = {"type": "workspace.changed", "kind": message["kind"], "id": message["id"]}
            self._push(encode(nudge))

    async def access_changed(self, message: Mapping[str, Any]) -> None:
        """Rights have changed: may this socket stay?"""
        await self._close_unless_welcome()

    def _push(self, frame: str) -> None:
        self._frames.append(frame)
        self._has_frames.set()

    def _accepted(self, ref: str | None, more: Mapping[str, str] | None = None) -> None:
        self._push(encode({"type": "accepted", "ref": ref, **(more or {})}))

    async def _tell_error(
        self,
        code: str,
        message: str,
        ref: str | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        error = {"type": "error", "ref": ref, "code": code, "message": message}
        if details:
            error["details"] = cast("Any", details)
        await self.send(encode(error))

    async def _send_snapshot(self, conversation: Conversation, ref: str | None = None) -> None:
        """Send a snapshot, then what has happened while it was read."""
        held = self._held.setdefault(conversation.pk, [])
        try:
            # Encoded off the loop: a long conversation is megabytes.
            frame, seq, streaming = await in_database(_encoded_snapshot, conversation, ref)
        finally:
            self._held.pop(conversation.pk, None)
        self._watched[conversation.pk] = seq
        self._push(frame)
        for message_id, text in streaming.items():
            now = live_text(message_id)
            if now is not None and len(now) > len(text):
                delta = TextDelta(conversation.pk, message_id, utf16_length(text), now[len(text) :])
                self._push(encode(delta.as_json()))
        for later, number in held:
            if number > seq:
                self._watched[conversation.pk] = number
                self._push(later)

    async def _write(self) -> None:
        """The one place that sends events, in order."""
        try:
            while True:
                await self._has_frames.wait()
                self._has_frames.clear()
                while self._frames:
                    await self.send(self._frames.popleft())
                for conversation_id in list(self._resync):
                    self._resync.discard(conversation_id)
                    await self._heal(conversation_id)
        except Exception:
            # A socket that cannot be written to is of no use: the page opens another one.
            logger.exception("socket_writer_failed")
            await self.close(INTERNAL_ERROR)

    async def _heal(self, conversation_id: UUID) -> None:
        try:
            conversation = await in_database(self._conversation, conversation_id)
            await self._send_snapshot(conversation)
        except DomainError:
            self._watched.pop(conversation_id, None)
            hub.unwatch(conversation_id, self)

    async def _check_now_and_then(self) -> None:
        """Heals what the channel layer lost, and ends what membership no longer allows."""
        before: dict[UUID, int] = {}
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self._close_unless_welcome()
                newest = await in_database(self._newest_seqs)
            except Exception:
                logger.warning("socket_check_failed", exc_info=True)
                continue
            for conversation_id, seq in newest.items():
                # What is only just committed is left to arrive by itself.
                is_old = before.get(conversation_id) == seq
                if is_old and self._watched.get(conversation_id, seq) < seq:
                    self._resync.add(conversation_id)
                    self._has_frames.set()
            before = newest

    def _newest_seqs(self) -> dict[UUID, int]:
        if not self._watched:
            return {}
        rows = Conversation.objects.for_workspace(self.workspace).visible_to(self.user)
        return dict(rows.filter(pk__in=list(self._watched)).values_list("pk", "event_seq"))

    async def _close_unless_welcome(self) -> None:
        code = await in_database(self._reason_to_close)
        if code is not None:
            await self.close(code)

    def _reason_to_close(self) -> int | None:
        if not self._is_signed_in():
            return SIGN_IN_AGAIN
        members = Membership.objects.for_workspace(self.workspace.pk)
        is_member = members.filter(
            user_id=self.user.pk, user__is_active=True, workspace__is_active=True
        ).exists()
        return None if is_member else NOT_A_MEMBER

    def _is_signed_in(self) -> bool:
        """Whether the session still lives, and was not ended by a change of the password."""
        key = self.scope["session"].session_key
        store = import_module(settings.SESSION_ENGINE).SessionStore(key)
        data = store.load()  # empty when it has run out
        user = User.objects.filter(pk=self.user.pk).first()
        return user is not None and constant_time_compare(
            data.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
        )

    # Housekeeping

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, group: str) -> None:
        if group not in self._groups:
            self._groups.add(group)
            with contextlib.suppress(OSError):
                await self.channel_layer.group_add(group, self.channel_name)

    async def _leave(self, group: str) -> None:
        self._groups.discard(group)
        with contextlib.suppress(OSError):
            await self.channel_layer.group_discard(group, self.channel_name)

    def _spend(self) -> None:
        """A bucket of commands that refills with time."""
        now = asyncio.get_running_loop().time()
        refill = (now - self._budget_at) * COMMANDS_PER_SECOND
        self._budget = min(COMMAND_BURST, self._budget + refill) - 1
        self._budget_at = now
        if self._budget < 0:
            raise _Abuse


def _encoded_snapshot(
    conversation: Conversation, ref: str | None
) -> tuple[str, int, dict[UUID, str]]:
    """A snapshot as it goes over the wire, its number, and the texts that still stream."""
    snapshot = read_snapshot(conversation)
    streaming = {
        UUID(message["id"]): message["text"]
        for message in snapshot["messages"]
        if message["status"] == MessageStatus.STREAMING.value
    }
    return encode({**snapshot, "ref": ref}), snapshot["seq"], streaming


class _Abuse(Exception):
    """More messages than any page sends."""


class _Malformed(Exception):
    """Not a message of ours at all."""


def _parse(text: str | None) -> object:
    if text is None:
        raise _Malformed("Only text messages are understood.")
    if len(text) > LARGEST_FRAME_BYTES or len(text.encode()) > LARGEST_FRAME_BYTES:
        raise _Malformed("This message is too long.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Malformed("This message is not JSON.") from error
