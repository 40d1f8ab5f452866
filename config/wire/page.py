"""docs/protocol.md: the socket for people who write a client of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chat.sockets.consumer import (
    COMMAND_BURST,
    COMMANDS_PER_SECOND,
    MOST_CONVERSATIONS,
    MOST_FAULTS,
)
from chat.sockets.frames import LARGEST_FRAME_BYTES
from chat.sockets.send_queue import STALLED_SECONDS
from chat.wire.events import CloseCode
from config.serving.daphne_limits import FRAMES_PER_SECOND, MOST_FRAMES
from config.wire.shapes import Wire
from config.wire.typescript import type_of

Schema = Mapping[str, Any]

_INTRODUCTION: Final = f"""# The socket

<!-- Written by `manage.py write_wire`; change config/wire/page.py or the docstrings of the code, not this page. -->

A page of Trellis holds one WebSocket. Over it the page sends commands and receives events. This page describes it for
people who write a client of their own. [protocol.json](protocol.json) describes every frame as JSON Schema.

You may not need it: [the REST interface](api.md) does everything that a page does, takes API tokens, and streams a turn
as server-sent events.

## Connect

Open `wss://<host>/ws/w/<workspace>/`, where `<workspace>` is the workspace's slug.

- **Session**: send the session cookie of a signed-in person. API tokens do not open the socket. The cookie is named
  `__Host-trellis-session` over HTTPS, and `trellis-session` without. A program gets it as a browser does: read
  `/accounts/login/`, then post `login`, `password` and the form's `csrfmiddlewaretoken` there, with the cookies that came.
  Somebody with two-step verification is asked for a code then.
- **Origin**: send an `Origin` header whose scheme, host and port are one of `TRELLIS_PUBLIC_ORIGINS`. Any other origin, or
  none, gets HTTP 403.
- **Person**: a page can add `?person=<id>`, the id of the person that it was made for. If somebody else is signed in
  meanwhile, the socket closes with {CloseCode.SIGN_IN_AGAIN.value}, and no command is read.
- **Checks**: with `?checks=yes` the page also hears of health checks that changed no status. They come for each server
  about once a minute.

Without a session the socket opens and closes at once with {CloseCode.SIGN_IN_AGAIN.value}. For a workspace that the person is not a member of, it
closes with {CloseCode.NOT_A_MEMBER.value}. While the workspace is suspended, or they are, it closes with
{CloseCode.WORKSPACE_SUSPENDED.value} or {CloseCode.ACCESS_SUSPENDED.value}. Where the workspace requires two-step verification and they have none, it closes with
{CloseCode.TWO_STEPS_NEEDED.value}. Trellis checks all of these every two seconds while the socket is open.

## Frames

Every frame is a text frame with one JSON object. Its `type` says which one it is. Ignore events of a type that you do
not know.

```json
{{"type": "subscribe", "conversation_id": "0199…", "ref": "1"}}
```

A command may carry a `ref` of up to 64 characters. The event that answers it carries the same `ref`. Commands answer
with `accepted` or `error`, except these: `subscribe` answers with `snapshot` or `current`, `ping` answers with `pong`,
and `ack` has no answer. Events of what a command changes may come before its answer. A client that looks for a change
should look at the rows that it keeps, and not only at events after the answer.

Limits:

- A frame has at most {LARGEST_FRAME_BYTES // 1024} KiB.
- You may send {COMMANDS_PER_SECOND:.0f} commands a second, and {COMMAND_BURST:.0f} at once after a pause. With more, the
  socket closes with {CloseCode.PROTOCOL_ABUSE.value}, and so it does after a frame that cannot be read as JSON.
- A message may come in pieces. With more than {MOST_FRAMES:.0f} frames at once, or {FRAMES_PER_SECOND:.0f} a second, the
  connection ends.
- One socket follows at most {MOST_CONVERSATIONS} conversations.
- After more than {MOST_FAULTS} faulty commands in a row, the socket closes with {CloseCode.PROTOCOL_ABUSE.value}.

## Follow a conversation

1. Send `subscribe`. You receive a `snapshot`: all rows, and `seq`, the number of the newest event that they contain.
2. Apply each row event whose `seq` is one higher than yours: put its row in the place of the row with the same `id`.
   Skip events whose `seq` you have already.
3. Apply deltas to the message that they name. A delta's `offset` says where its text belongs, counted in UTF-16 code
   units. Skip what you already have of it. Ignore deltas that come before the first `snapshot`: it holds their text.

## Resume after a gap

A `seq` that skips a number, or a delta whose `offset` lies beyond your text, means that you missed something. Send
`subscribe` again, and replace what you have by the snapshot.

After a lost connection, connect again and send `subscribe` with the newest `seq` that you have. You receive `current` if
nothing happened since and nothing streams, otherwise a `snapshot`. A command that was not answered may have been carried
out. Send it again with the same `client_id`: the same id does nothing twice.

Trellis compares numbers every two seconds, and sends a `snapshot` on its own where a socket missed events.

## Keep up

Now and then Trellis sends `check`. Answer at once with `ack` and the same `number`. While too much is unanswered,
Trellis sends nothing more, joins what waits, and at last replaces it by a fresh `snapshot`. A client that leaves a
`check` unanswered for {STALLED_SECONDS:.0f} seconds is disconnected. Numbers are random, and a `subscribe` is answered
once you have read what was sent before.
"""

_ERRORS: Final = """
## Errors

`error` answers a command that was not carried out. `code` is for programs and stays the same, `message` is for people,
and `details` names the fields that are wrong. The socket stays open unless a close code follows.

| code | meaning |
|---|---|
| `malformed` | The frame is not text, is too long, or is not JSON. The socket closes. |
| `rate_limited` | You sent too much, too fast. The socket closes if you sent too many frames. |
| `invalid` | The command is unknown, lacks a field, has one too many, or a value does not fit. |
| `not_found` | There is no such row, or it is not yours. |
| `forbidden` | Your role does not allow this. |
| `conflict` | The state has moved on, such as a turn that has ended, or a `client_id` that was used for something else. |
| `limit_reached` | A limit of the workspace or of the conversation is reached. |
| `audit_unavailable` | The audit log cannot be written, so nothing was done. |
| `unavailable` | The database is busy or out of reach. Try again soon. |
| `internal_error` | Trellis made a mistake. It has been logged. |

Commands that reach a tool can fail with further codes, such as `call_refused`. Show their `message`.

## Close codes

| code | meaning |
|---|---|
"""


def write_page(wire: Wire) -> str:
    """The text of docs/protocol.md."""
    closing = "".join(f"| {code.value} | {code.meaning} |\n" for code in CloseCode)
    return "".join(
        (
            _INTRODUCTION,
            "\n## Commands\n",
            *(_section(schema) for schema in wire.commands.values()),
            "\n## Events\n",
            *(_section(schema) for schema in wire.events.values()),
            _ERRORS,
            closing,
            "\n## Shapes\n\nThe rows in events have the same shapes as in the REST interface. Ids\nare UUIDs, and times are ISO 8601 in UTC. `Json` is any JSON value, and `JsonObject` any JSON object.\n",
            *(_section(schema, name) for name, schema in sorted(wire.shapes.items())),
        )
    )


def _section(schema: Schema, name: str = "") -> str:
    """A command or an event with its fields; or a shape, by its name."""
    properties = dict(schema.get("properties", {}))
    if not name:
        name = f"`{properties.pop('type')['const']}`"
        if "ref" not in schema["required"]:  # every command's; Frames tells of it
            properties.pop("ref", None)
    text = f"\n### {name}\n"
    if schema.get("description"):
        text += f"\n{schema['description']}\n"
    if not properties:
        return text if "properties" in schema else f"{text}\n{_type(schema)}\n"
    required = set(schema.get("required", ()))
    rows = (
        f"| `{field}` | {_type(value)} | {_note(value, is_optional=field not in required)} |\n"
        for field, value in properties.items()
    )
    return f"{text}\n| field | type | |\n|---|---|---|\n{''.join(rows)}"


def _type(schema: Schema) -> str:
    return f"`{type_of(schema)}`".replace("|", "\\|")


def _note(schema: Schema, *, is_optional: bool) -> str:
    words = " ".join(str(schema.get("description", "")).split())
    return " ".join(part for part in ("*Optional.*" if is_optional else "", words) if part)
