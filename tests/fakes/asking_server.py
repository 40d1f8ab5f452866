"""A real MCP server that asks back: forms, links, the model, roots; in every revision that its client speaks."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, DeclinedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from tests.fakes.mcp_server import Listening

LINK = "https://sign.example/contract/42"


class Booking(BaseModel):
    """What the table is booked with."""

    name: str = Field(title="Name", min_length=1)
    guests: int = Field(title="Guests", ge=1, le=12, default=2)
    seat: Literal["window", "garden", "bar"] = "window"


class Secretive(BaseModel):
    """A form that asks for what no form should."""

    password: str


def ask_booking() -> Elicit[Booking]:
    return Elicit("For whom is the table?", Booking)


def ask_secret() -> Elicit[Secretive]:
    return Elicit("Who are you really?", Secretive)


def ask_model(topic: str) -> Sample:
    text = TextContent(type="text", text=f"Write about {topic}")
    return Sample(
        [SamplingMessage(role="user", content=text)], max_tokens=50, system_prompt="Rhyme."
    )


def ask_roots() -> ListRoots:
    return ListRoots()


class AskingServer:
    """Counts what it did, outside of our database."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.server = MCPServer(
            "asking", version="1.0", log_level="ERROR", instructions="Be polite."
        )
        self.visited = threading.Event()
        self._add_tools()
        self._add_rest()
        self._listening = Listening(self.server.streamable_http_app())

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self._listening.origin}/mcp"

    def restart(self) -> None:
        """Begin anew at the same address, as another process that knows nothing of this one."""
        port = self._listening.port
        self._listening.stop()
        self.server = MCPServer("asking", version="1.0", log_level="ERROR")
        self._add_tools()
        self._listening = Listening(self.server.streamable_http_app(), port=port)

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def _add_tools(self) -> None:
        server, done = self.server, self.done
        reads = ToolAnnotations(read_only_hint=True)

        @server.tool(annotations=reads)
        def book_table(
            when: str, booking: Annotated[ElicitationResult[Booking], Resolve(ask_booking)]
        ) -> str:
            """Book a table; asks for whom."""
            if isinstance(booking, AcceptedElicitation):
                done.append(("book_table", {"when": when, **booking.data.model_dump()}))
                return (
                    f"{booking.data.name}, {booking.data.guests} at the {booking.data.seat}, {when}"
                )
            declined = isinstance(booking, DeclinedElicitation)
            return "The guest declined." if declined else "The guest cancelled."

        @server.tool(annotations=reads)
        def log_in(secret: Annotated[ElicitationResult[Secretive], Resolve(ask_secret)]) -> str:
            """Ask for a password in a form."""
            return type(secret).__name__

        @server.tool(annotations=reads)
        def rhyme(topic: str, poem: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
            """Have the client's model write a rhyme."""
            assert isinstance(poem.content, TextContent)
            done.append(("rhyme", {"topic": topic}))
            return f"{poem.model}: {poem.content.text}"

        @server.tool(annotations=reads)
        def where(roots: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
            """Tell the client's roots."""
            return ", ".join(str(root.uri) for root in roots.roots) or "nowhere"

        @server.tool(annotations=reads)
        async def ask_old(ctx: Context) -> str:
            """Ask over the open connection, which only older revisions have."""
            result = await ctx.elicit("For whom is the table?", Booking)
            return result.action

        @server.tool(annotations=reads)
        async def ask_twice(ctx: Context) -> str:
            """Ask the same question twice, over the open connection."""
            first = await ctx.elicit("Pay now?", Booking)
            second = await ctx.elicit("Pay now?", Booking)
            return f"{first.action}, {second.action}"

        @server.tool(annotations=reads)
        async def sign_old(ctx: Context, url: str = LINK) -> str:
            """Send the person to a link, over the open connection."""
            result = await ctx.elicit_url("Please sign the contract.", url, "contract-42")
            return result.action

        @server.tool(annotations=reads)
        def sign_new(ctx: Context, url: str = LINK) -> Any:
            """Send the person to a link, in a round of its own."""
            responses = ctx.input_responses
            if not responses:
                params = ElicitRequestURLParams(message="Please sign the contract.", url=url)
                return InputRequiredResult(input_requests={"sign": ElicitRequest(params=params)})
            return str(getattr(responses["sign"], "action", responses["sign"]))

        @server.tool(annotations=reads)
        def sign_first(ctx: Context) -> str:
            """Refuse to begin before the person has been at a link."""
            if not self.visited.is_set():
                raise UrlElicitationRequiredError(
                    [
                        ElicitRequestURLParams(
                            message="Please sign first.", url=LINK, elicitation_id="contract-43"
                        )
                    ]
                )
            done.append(("sign_first", {}))
            return "signed"

        @server.tool(annotations=reads)
        async def slow_echo(text: str, ctx: Context, steps: int = 5) -> str:
            """Say it again, with signs of life in between."""
            for step in range(steps):
                await ctx.report_progress(step, steps, "still here")
                await asyncio.sleep(0.12)
            return text

    def _add_rest(self) -> None:
        @self.server.resource("menu://today", title="Today's menu", mime_type="text/markdown")
        def menu() -> str:
            """What there is today."""
            return "# Soup\n\u202eof the day"

        @self.server.prompt(title="Recommend a dish")
        def recommend(taste: str, budget: str = "20") -> str:
            """Ask for a recommendation."""
            return f"Recommend something {taste} for {budget} euros."
