"""Notes: a small MCP server over stdio, with one tool of each kind, a tool that asks back, resources and a prompt.

    python mcp_servers/registry/demo/notes_server.py [--folder FOLDER]

Keeps its notes in `notes.json` in the folder (by default the variable NOTES_FOLDER, else the home folder), and begins
with three of them. Runs by its path, and knows
nothing of the platform.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Annotated, Final, Literal

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import Completion, CompletionArgument, ToolAnnotations
from pydantic import BaseModel, Field

SEEDS: Final = {
    "old": "Remember to delete this note.",
    "shopping": "Twine, slug pellets, a new watering can.",
    "ideas": "Grow beans up the trellis. Ask the neighbours for cuttings.",
}
_REPORT_STEPS: Final = 10
_MAX_SECONDS: Final = 120.0

Name = Annotated[
    str,
    Field(
        description="The note's name, such as: shopping",
        min_length=1,
        max_length=100,
        pattern=r"^[^/\\]+$",
    ),
]


class GardenDay(BaseModel):
    """What the plan of a day in the garden depends on."""

    when: Annotated[str, Field(title="Day", json_schema_extra={"format": "date"})]
    work: Annotated[Literal["sowing", "weeding", "harvest"], Field(title="What is to be done")] = (
        "weeding"
    )
    helpers: Annotated[int, Field(title="How many people help", ge=1, le=20)] = 2
    has_lunch: Annotated[bool, Field(title="With lunch")] = True


def ask_about_the_day() -> Elicit[GardenDay]:
    """The question to the person, before the tool's own work begins."""
    return Elicit("Tell me a little about your day in the garden.", GardenDay)


class Notebook:
    """Notes by name, in one JSON file that is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "notes.json"
        if not self._path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self.write(dict(SEEDS))

    def read(self) -> dict[str, str]:
        """All notes."""
        notes: dict[str, str] = json.loads(self._path.read_text(encoding="utf-8"))
        return notes

    def write(self, notes: dict[str, str]) -> None:
        """Replace all notes."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(notes, ensure_ascii=False, indent=1), encoding="utf-8")
        fresh.replace(self._path)


def build_server(notebook: Notebook) -> MCPServer:
    """The server over one notebook."""
    server = MCPServer(
        name="notes",
        version="1.0",
        instructions="Short notes, each with a name.",
        log_level="WARNING",
    )

    @server.tool(
        title="List notes",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    def list_notes() -> list[str]:
        """List the names of all notes."""
        return sorted(notebook.read())

    @server.tool(
        title="Read a note",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    def read_note(name: Name) -> str:
        """Read one note."""
        notes = notebook.read()
        if name not in notes:
            raise ToolError(f"There is no note called {name!r}.")
        return notes[name]

    @server.tool(
        title="Write a note",
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )
    def write_note(
        name: Name, text: Annotated[str, Field(description="What the note says", max_length=10_000)]
    ) -> str:
        """Write a note; one of the same name gets the new text."""
        notebook.write({**notebook.read(), name: text})
        return f"Wrote the note {name!r}."

    @server.tool(
        title="Delete a note",
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    )
    def delete_note(name: Name) -> str:
        """Delete a note for good."""
        notes = notebook.read()
        if name not in notes:
            raise ToolError(f"There is no note called {name!r}.")
        del notes[name]
        notebook.write(notes)
        return f"Deleted the note {name!r}."

    @server.tool(
        title="Slow report",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    async def slow_report(
        ctx: Context,
        seconds: Annotated[
            float, Field(description="How long to take", ge=0, le=_MAX_SECONDS)
        ] = 10.0,
    ) -> str:
        """Write a report on all notes, slowly, and say how far it is."""
        for step in range(_REPORT_STEPS):
            await ctx.report_progress(
                step, _REPORT_STEPS, f"Reading page {step + 1} of {_REPORT_STEPS}"
            )
            await asyncio.sleep(seconds / _REPORT_STEPS)
        await ctx.report_progress(_REPORT_STEPS, _REPORT_STEPS, "Done")
        notes = notebook.read()
        return f"{len(notes)} notes with {sum(len(text) for text in notes.values())} characters in all."

    @server.tool(
        title="Plan a garden day",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    def plan_garden_day(
        day: Annotated[ElicitationResult[GardenDay], Resolve(ask_about_the_day)],
    ) -> str:
        """Plan a day in the garden; asks you when it is and who helps."""
        if not isinstance(day, AcceptedElicitation):
            return "There is no plan: the question about the day was not answered."
        plan = day.data
        hours = max(1, 8 // plan.helpers)
        lunch = " Lunch is at noon." if plan.has_lunch else ""
        return f"On {plan.when}: {plan.work}, {plan.helpers} people, about {hours} h each.{lunch}"

    _add_resources(server, notebook)
    return server


def _add_resources(server: MCPServer, notebook: Notebook) -> None:
    """What can be attached to a message or begun with, besides the tools."""

    @server.resource("note://all", title="All notes", mime_type="text/markdown")
    def all_notes() -> str:
        """Every note, one after the other."""
        return "\n\n".join(f"## {name}\n{text}" for name, text in sorted(notebook.read().items()))

    @server.resource("note://named/{name}", title="One note", mime_type="text/plain")
    def one_note(name: str) -> str:
        """One note, by its name."""
        notes = notebook.read()
        if name not in notes:
            raise ValueError(f"There is no note called {name!r}.")
        return notes[name]

    @server.prompt(title="Tidy up a note")
    def tidy_up(
        name: Annotated[str, Field(description="The note's name, such as: shopping")],
        tone: Annotated[str, Field(description="How it should sound, such as: brief")] = "brief",
    ) -> str:
        """Ask for a clearer wording of one note."""
        return f'Read the note "{name}" and say it again, {tone} and in good order.'

    @server.completion()  # type: ignore[no-untyped-call]  # the SDK says nothing of it
    async def suggest(
        ref: object, argument: CompletionArgument, context: object
    ) -> Completion | None:
        """Names of notes, for whatever is called a name; a few tones."""
        known = {"name": sorted(notebook.read()), "tone": ["brief", "cheerful", "formal"]}
        wanted = known.get(argument.name, [])
        return Completion(values=[one for one in wanted if one.startswith(argument.value)])


def main() -> None:
    """Serve over standard input and output until the input ends."""
    parser = argparse.ArgumentParser(
        prog="notes_server", description=__doc__.splitlines()[0] if __doc__ else None
    )
    default = os.environ.get("NOTES_FOLDER") or str(Path.home())
    parser.add_argument("--folder", type=Path, default=Path(default))
    build_server(Notebook(parser.parse_args().folder)).run(transport="stdio")


if __name__ == "__main__":
    main()
