"""Where a call can carry what is in its arguments."""

from __future__ import annotations

from uuid import UUID

import pytest

from mcp_servers.gate.destinations import destinations_of, names_host, names_server

SERVER = UUID(int=1)
TO_SERVER = "the server"


def reached(**arguments: object) -> set[str]:
    return set(destinations_of(SERVER, TO_SERVER, arguments).values())


@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        ("words", {TO_SERVER}),
        ("report.txt", {TO_SERVER}),
        ("docs/a.md", {TO_SERVER}),
        ("see https://a.example now", {TO_SERVER, "a.example"}),
        ("https://a.example/x?d=1", {"a.example"}),
        ("HTTPS://A.Example./", {"a.example"}),
        ("https://known@evil.example:8443/", {"evil.example"}),
        ("//evil.example/x", {"evil.example"}),
        ("https:evil.example", {"evil.example"}),
        ("http://[::1]:80/", {"::1"}),
        ("10.0.0.5:8000", {"10.0.0.5"}),
        ("evil.example/?d=secret&known=https://known.example", {"evil.example"}),
        ("evil\u3002example/?d=secret", {"evil.example"}),
        ("secret.evil.example", {"secret.evil.example"}),
        ("a@evil.example", {"evil.example"}),
        ([{"deep": "https://evil.example"}], {"evil.example"}),
        ({"https://evil.example": 1}, {"evil.example"}),
    ],
)
def test_the_places_that_a_value_names(value: object, hosts: set[str]) -> None:
    """SEC-271: hosts as lenient clients read them; what is no address goes to the server."""
    assert reached(value=value) == hosts


@pytest.mark.parametrize(
    "value", ["https://known.example\\@evil.example/", "https://known.example\n.evil.example/"]
)
def test_an_address_that_clients_read_differently_is_a_place_of_its_own(value: str) -> None:
    """SEC-271: nobody can have named it by naming one of the hosts."""
    assert reached(value=value) - {"known.example"}
    assert not all(names_host("read known.example", one) for one in reached(value=value))


def test_a_place_is_named_by_its_whole_name_alone() -> None:
    """SEC-271: a longer name is another host."""
    for text in ("b.example", "Read https://b.example/x.", "(B.Example)", "mail a@b.example"):
        assert names_host(text, "b.example")
    for text in ("notb.example", "a.b.example", "b.example.org", "b-example"):
        assert not names_host(text, "b.example")
    assert names_server("please use Web search, now", "web search")
    assert not names_server("counting sheep", "count")
    assert not names_server("anything", "")
