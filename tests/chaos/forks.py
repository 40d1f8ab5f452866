"""A process that has everything loaded and forks one that talks, goes on, or looks, for each order from the tests.

    python -m tests.chaos.forks <model url> <server url>

Each order is a line of JSON on the standard input, each answer one on the standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import django

LEASE_SECONDS = 0.8
MOST_SECONDS = 120.0
Order = dict[str, Any]


def main() -> None:
    """Put rows into the database, then fork as told until the input ends."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    _load()
    model_url, server_url, number = sys.argv[1:4]
    folder = Path(os.environ["TRELLIS_DATA_DIR"])
    # In a child as well: this process must have no thread and no connection when it forks.
    seed = _fork(lambda: _seed(model_url, server_url, int(number)), folder / "seed")
    code = _wait_for(seed)
    _say({"seed": code, **_result(folder / "seed")})
    for line in sys.stdin:
        order = json.loads(line)
        match order["op"]:
            case "fork":
                name = folder / f"result-{time.monotonic_ns()}"
                pid = _fork(lambda order=order: _obey(order), name)  # type: ignore[misc]
                _say({"pid": pid, "name": str(name)})
            case "wait":
                code = _wait_for(order["pid"])
                _say({"code": code, **_result(Path(order["name"]))})
            case "continue":
                os.kill(order["pid"], signal.SIGCONT)
                _say({})


def _load() -> None:
    """Import what a turn needs, so that no child has to."""
    import tests.chat.conftest
    import tests.mcp_servers.factories  # noqa: F401
    from mcp_servers.client.connections.hooks import hooks

    hooks.traced = None


def _say(answer: Order) -> None:
    print(json.dumps(answer), flush=True)


def _fork(work: Callable[[], Order], result: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # The parent's pipes are not for whatever a library prints.
        os.dup2(2, 1)
        answer = work()
        result.write_text(json.dumps(answer))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait_for(pid: int) -> int | str:
    """The exit code, minus the number of the signal, or "stopped"."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return "stopped"
    return os.waitstatus_to_exitcode(status)


def _result(path: Path) -> Order:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _seed(model_url: str, server_url: str, number: int) -> Order:
    from chat.services.conversations import create_conversation
    from tests.chaos.cast import make_cast

    tenant, bud = make_cast(model_url, server_url)
    actor = tenant.actor("member")
    conversations = [
        create_conversation(bud=bud, owner=tenant.member, actor=actor) for _ in range(number)
    ]
    return {"conversations": [str(one.pk) for one in conversations]}


def _obey(order: Order) -> Order:
    import time_machine

    from chat.engine import asking, leases, runner
    from tests.chaos import failpoints

    leases.LEASE = timedelta(seconds=order.get("lease", LEASE_SECONDS))
    leases.RENEW_SECONDS = leases.LEASE.total_seconds() / 4
    runner.WATCH_SECONDS = 0.15
    asking.SAVE_PARTIAL_SECONDS = 0.05
    failpoints.arm_from(order.get("failpoints", ""))
    clock: Any = contextlib.nullcontext()
    if order.get("clock"):
        clock = time_machine.travel(time.time() + order["clock"], tick=True)
    with clock:
        return _JOBS[order["job"]](order)


def _talk(order: Order) -> Order:
    """Send the messages, and do what a person does until all turns have ended; also after another process has sent them."""
    from chat.engine import runner
    from chat.models import QueuedMessage, ToolCall, Turn
    from chat.services.approvals import decide
    from chat.values import Decision

    stories = order["stories"]
    if order.get("watches", not order.get("failpoints")):
        runner.watch_for_orphans()  # those that are to die shall not take up what others have left
    for story in stories:
        workspace_id, actor = _send(story)
    ids = [story["conversation"] for story in stories]
    turns = Turn.objects.for_workspace(workspace_id).filter(conversation_id__in=ids)
    calls = ToolCall.objects.for_workspace(workspace_id).filter(turn__in=turns)
    queued = QueuedMessage.objects.for_workspace(workspace_id).filter(conversation_id__in=ids)
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline:
        if not turns.filter(status__in=_ACTIVE).exists() and not queued.exists():
            break
        # Only once the turn has been parked: somebody quicker than that would have it go on without.
        asked = calls.filter(status="waiting_for_approval", turn__status="waiting_for_approval")
        for call in asked:
            _unless_late(decide, call=call, decision=Decision.APPROVED, actor=actor)
        for call in calls.filter(status="outcome_unknown"):
            _give_up(call, actor)
        time.sleep(0.03)
    ended = calls.order_by("message__order_key", "position")
    return {
        "stories": {
            one: {
                "statuses": list(
                    turns.filter(conversation_id=one)
                    .order_by("pk")
                    .values_list("status", flat=True)
                ),
                "calls": list(
                    ended.filter(turn__conversation_id=one).values_list("status", flat=True)
                ),
                "refusals": list(
                    ended.filter(turn__conversation_id=one, status="refused").values_list(
                        "model_text", flat=True
                    )
                ),
            }
            for one in ids
        }
    }


_ACTIVE = ["queued", "running", "waiting_for_approval", "waiting_for_input"]


def _send(order: Order) -> tuple[UUID, Any]:
    from chat.models import Conversation
    from chat.services.turns import send_message, send_or_queue
    from chat.values import WhenBusy
    from workspaces.actors import Source
    from workspaces.middleware import actor_for

    rows = Conversation.objects.across_workspaces().select_related("owner", "workspace")
    conversation = rows.get(pk=order["conversation"])
    actor = actor_for(conversation.owner, conversation.workspace, source=Source.CHAT)
    message = {"conversation": conversation, "text": order["text"], "actor": actor}
    _unless_late(send_message, client_id=order["client_id"], **message)
    if order.get("queues"):
        _unless_late(
            send_or_queue,
            client_id=f"{order['client_id']}-2",
            when_busy=WhenBusy.QUEUE,
            **message,
        )
    return conversation.workspace_id, actor


def _give_up(call: Any, actor: Any) -> None:
    from chat.services.resolutions import resolve_call
    from chat.values import Resolution

    _unless_late(resolve_call, call=call, resolution=Resolution.GIVE_UP, actor=actor)


def _unless_late(do: Callable[..., Any], **values: Any) -> None:
    """As pages do: an error that says that somebody was faster is no error, one of the process is tried again."""
    from tests.chaos.failpoints import FailpointHit
    from workspaces.errors import DomainError

    for _ in range(2):
        try:
            do(**values)
        except FailpointHit:
            continue
        except DomainError:
            pass
        return


def _leave(order: Order) -> Order:
    """Send the message, and leave as a process does that is told to end while the model speaks."""
    from chat.engine import runner
    from chat.models import Message
    from tests.patience import wait_until

    (story,) = order["stories"]
    workspace_id, _ = _send(story)
    messages = Message.objects.for_workspace(workspace_id).filter(
        conversation_id=story["conversation"], status="streaming"
    )
    wait_until(lambda: messages.exclude(text="").exists(), what="the answer")
    asyncio.run(runner.hand_over(0.0))
    return {}


def _check(order: Order) -> Order:
    """The checker's word on some conversations."""
    from tests.chaos.history_check import Effect, find_violations
    from tests.chaos.history_reader import read_history

    effects = [Effect(tool, arguments) for tool, arguments in order["effects"]]
    found = {}
    for story in order["stories"]:
        conversation_id = UUID(story["conversation"])
        mine = [e for e in effects if str(e.arguments["what"]).startswith(story["token"])]
        accepted = [(conversation_id, story["client_id"])]
        history = read_history(conversation_id)
        found[story["conversation"]] = [
            str(one) for one in find_violations(history, accepted=accepted, effects=mine)
        ]
    return {"stories": found}


_JOBS: dict[str, Callable[[Order], Order]] = {"talk": _talk, "leave": _leave, "check": _check}

if __name__ == "__main__":
    main()
