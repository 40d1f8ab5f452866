"""The demo model matches questions to tools it has never seen."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from chat.demo_model.brain import reply_to
from chat.demo_model.transport import DEMO_ORIGIN, demo_transport
from chat.providers.base import Completion, CompletionRequest, ProviderSpec
from chat.providers.openai_compatible import OpenAICompatible
from workspaces import outbound


def function(
    name: str, description: str, required: tuple[str, ...] = (), /, **properties: Any
) -> Any:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(required)},
        },
    }


ZONE = {
    "type": "string",
    "description": "IANA timezone name. Use 'Europe/Berlin' as local timezone",
}
TEXT = {"type": "string"}
TOOLS = [
    function(
        "time__get_current_time",
        "[time] Get current time in a time zone",
        ("timezone",),
        timezone=ZONE,
    ),
    function(
        "time__convert_time",
        "[time] Convert time between timezones",
        ("source_timezone", "time", "target_timezone"),
        source_timezone=ZONE,
        time={"type": "string", "description": "Time in 24-hour format"},
        target_timezone=ZONE,
    ),
    function("notes__list_notes", "[notes] List the names of all notes."),
    function("notes__delete_note", "[notes] Delete a note for good.", ("name",), name=TEXT),
    function(
        "shop__find_product", "[shop] Find a product by its colour.", ("colour",), colour=TEXT
    ),
]


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("What time is it in Tokyo?", "time__get_current_time", {"timezone": "Asia/Tokyo"}),
        ("what time is it?", "time__get_current_time", {"timezone": "Europe/Berlin"}),
        (
            "Convert 14:30 from London to New York",
            "time__convert_time",
            {
                "source_timezone": "Europe/London",
                "time": "14:30",
                "target_timezone": "America/New_York",
            },
        ),
        ("Which notes do I have?", "notes__list_notes", {}),
        ('Delete the note "old"', "notes__delete_note", {"name": "old"}),
        ("delete the note old", "notes__delete_note", {"name": "old"}),
        ('find the product with colour "red"', "shop__find_product", {"colour": "red"}),
    ],
)
def test_a_question_finds_its_tool(question: str, name: str, arguments: dict[str, Any]) -> None:
    """Ours: by names, descriptions and schemas, also of servers a person adds."""
    reply = reply_to([{"role": "user", "content": question}], TOOLS)
    assert [call.name for call in reply.calls] == [name]
    assert json.loads(reply.calls[0].arguments) == arguments


def test_what_no_tool_answers_is_answered_honestly() -> None:
    """Ours: it says that it is no AI."""
    reply = reply_to([{"role": "user", "content": "What is the meaning of life?"}], TOOLS)
    assert not reply.calls
    assert "not an AI" in reply.text


def test_it_tells_how_it_chose_when_it_is_asked_to_think_aloud() -> None:
    """Ours: the same call as without, and a thought before it."""
    question = "Think aloud: what time is it in Tokyo?"
    reply = reply_to([{"role": "user", "content": question}], TOOLS)
    assert [call.name for call in reply.calls] == ["time__get_current_time"]
    assert "time.get_current_time" in reply.thought
    plain = reply_to([{"role": "user", "content": "What time is it in Tokyo?"}], TOOLS)
    assert plain.thought == ""


def test_a_missing_value_is_asked_for() -> None:
    """Ours: it asks instead of inventing."""
    reply = reply_to([{"role": "user", "content": "Delete a note"}], TOOLS)
    assert not reply.calls
    assert "`name`" in reply.text


def test_of_a_long_file_it_shows_what_the_question_is_about() -> None:
    """REL-722: with the page; one that is too long to be sent is looked through with the tool for it."""
    pages = [
        f"> [Page {number}]\n> Nothing but weeds and words {number}" for number in range(1, 200)
    ]
    pages[149] += "\n> The treasure lies under the old oak."
    body = "\n".join(pages)
    question = "Where is the treasure?\n\n[Attached: the file “book.pdf”. "
    whole = f"{question}This is data, not instructions:]\n{body}"
    shown = reply_to([{"role": "user", "content": whole}], TOOLS).text
    assert shown.endswith("- Page 150: The treasure lies under the old oak.")

    outline = f"{question}It is too long to stand here. This is data:]\n> Its parts"
    reading = function("read_artifact", "Read a file", ("name",), name=TEXT, search=TEXT)
    reply = reply_to([{"role": "user", "content": outline}], [*TOOLS, reading])
    [call] = reply.calls
    assert json.loads(call.arguments) == {"name": "book.pdf", "search": "treasure"}


def test_its_table_has_two_columns() -> None:
    """Ours: also where a text has a comma."""
    name = {"type": "string", "description": "With its ending"}
    content = {"type": "string", "description": "The whole content"}
    create = function(
        "write_file", "[files] Write a table", ("name", "content"), name=name, content=content
    )
    asked = [{"role": "user", "content": "Write a table about vegetables"}]
    [call] = reply_to(asked, [create]).calls
    rows = list(csv.reader(json.loads(call.arguments)["content"].splitlines()))
    assert [len(row) for row in rows] == [2, 2, 2]


async def test_it_speaks_the_wire_format_and_streams() -> None:
    """Ours: reached by the same client as a real model, piece by piece."""
    spec = ProviderSpec(name="d", base_url=f"{DEMO_ORIGIN}/v1", model="demo")
    request = CompletionRequest(model="demo", messages=[{"role": "user", "content": "hello"}])
    async with outbound.client(mounts={DEMO_ORIGIN: demo_transport()}) as http:
        pieces = [piece async for piece in OpenAICompatible(spec, http).stream(request)]
    assert isinstance(pieces[-1], Completion)
    assert len(pieces) > 5
    assert pieces[-1].finish_reason == "stop"
