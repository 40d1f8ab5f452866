"""Names for the model are one-to-one, allowed, and the same every time."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from mcp_servers.client.tool_names import NamedTool, name_tools

ALLOWED = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")


def tool(server: str, name: str, server_id: UUID | None = None) -> NamedTool:
    return NamedTool(server_id or uuid4(), server, uuid4(), name)


def test_a_plain_name_stays_readable() -> None:
    """Ours: `server__tool` where nothing speaks against it."""
    assert list(name_tools([tool("time", "get_current_time")])) == ["time__get_current_time"]
    assert list(name_tools([tool("365", "mail")])) == ["_365__mail"]


def test_look_alikes_and_collisions_keep_apart() -> None:
    """SEC-65: `a__b`, `a_b`, cyrillic letters and mapped names each reach their own tool."""
    tools = [
        tool("s", "a__b"),
        tool("s__a", "b"),
        tool("s", "a.b"),
        tool("s", "a/b"),
        tool("s", "pay"),
        tool("s", "рау"),
        tool("s", "PAY"),
        tool("s", "x" * 128),
        tool("s", "x" * 127),
    ]
    named = name_tools(tools)
    assert len(named) == len(tools)
    assert set(named.values()) == {t.tool_id for t in tools}
    assert all(ALLOWED.match(name) for name in named)
    assert len({name.lower() for name in named}) == len(tools)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=140)), max_size=12
    )
)
def test_any_names_map_one_to_one_in_any_order(pairs: list[tuple[str, str]]) -> None:
    """SEC-65: whatever servers call their tools."""
    tools = [tool(server, name) for server, name in dict.fromkeys(pairs)]
    named = name_tools(tools)
    assert set(named.values()) == {t.tool_id for t in tools}
    assert all(ALLOWED.match(name) for name in named)
    assert named == name_tools(reversed(tools))
