"""The provider's API, over real HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from mcp_servers.klavis import client, errors
from mcp_servers.klavis.client import KlavisApi
from mcp_servers.klavis.http import KlavisCredentials, KlavisHttp
from tests.fakes.klavis import KEY, FakeKlavis

T = TypeVar("T")


@pytest.fixture(params=["current", "older"])
def either(request: pytest.FixtureRequest) -> Iterator[FakeKlavis]:
    """The provider in both of its forms."""
    double = FakeKlavis(request.param)
    yield double
    double.stop()


def ask(
    double: FakeKlavis,
    work: Callable[[KlavisApi], Awaitable[T]],
    *,
    key: str = KEY,
    waits: list[float] | None = None,
) -> T:
    """Do something with the API, without waiting between attempts."""

    async def pause(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    async def run() -> T:
        connection = KlavisCredentials(base_url=double.origin, api_key=key)
        async with KlavisHttp(connection, pause=pause) as http:
            return await work(client.api_for(http, double.dialect))

    return asyncio.run(run())


async def life_of_one(api: KlavisApi) -> tuple[Any, ...]:
    made = await api.create_instance(server_name="gmail", user_id="u1", is_read_only=False)
    again = await api.create_instance(server_name="Gmail", user_id="u1", is_read_only=False)
    before = await api.get_instance(made.instance_id)
    await api.set_credential(made.instance_id, {"token": "t-1"})
    after = await api.get_instance(made.instance_id)
    await api.delete_credential(made.instance_id)
    out = await api.get_instance(made.instance_id)
    await api.delete_instance(made.instance_id)
    return made, again, before, after, out


def test_both_forms_make_an_instance_sign_in_and_delete_it(either: FakeKlavis) -> None:
    """Ours: one interface, and making is idempotent."""
    made, again, before, after, out = ask(either, life_of_one)
    assert made.server_url == again.server_url
    assert made.oauth_url
    assert not before.may_be_used
    assert after.may_be_used
    assert not out.may_be_used
    assert not either.instances
    assert {one.headers["authorization"] for one in either.requests} == {f"Bearer {KEY}"}
    bodies = [one.body for one in either.requests if one.path.endswith("/create")]
    assert all("isReadOnly" not in body for body in bodies)  # unset is left out


def test_the_calls_that_give_credentials_away_are_not_there(either: FakeKlavis) -> None:
    """SEC-117: nothing ever reads a stored credential."""
    ask(either, life_of_one)
    read = [path for path in either.paths("GET") if path.endswith("/auth") or "get-auth" in path]
    assert not read
    assert not [name for name in dir(KlavisApi) if "credential" in name and "get" in name]


def test_the_form_is_found_out(either: FakeKlavis) -> None:
    """Ours: by one question, which only the older form answers."""

    async def run() -> str:
        connection = KlavisCredentials(base_url=either.origin, api_key=KEY)
        async with KlavisHttp(connection) as http:
            return await client.find_dialect(http)

    assert asyncio.run(run()) == either.dialect


def test_the_older_form_says_what_it_cannot_do() -> None:
    """Ours: instead of asking for what is not there."""
    double = FakeKlavis("older")
    try:
        with pytest.raises(errors.NotOffered):
            ask(double, lambda api: api.create_strata(user_id="u", servers=["gmail"]))
        with pytest.raises(errors.NotOffered):
            ask(double, lambda api: api.set_read_only("x", is_read_only=True))
        assert not double.requests
    finally:
        double.stop()


def test_several_services_behind_one_server(provider: FakeKlavis) -> None:
    """Ours: made, looked at, enlarged and emptied."""

    async def work(api: KlavisApi) -> tuple[Any, ...]:
        made = await api.create_strata(user_id="u", servers=["gmail"])
        await api.add_to_strata(made.strata_id, ["slack"])
        seen = await api.get_strata(made.strata_id)
        await api.remove_from_strata(made.strata_id, ["gmail", "slack"])
        return made, seen

    made, seen = ask(provider, work)
    assert set(made.oauth_urls) == {"gmail"}
    assert seen.connected_servers == ["gmail", "slack"]
    assert provider.bundles[made.strata_id].servers == []


def test_the_catalogue_leaves_out_what_cannot_be_read(provider: FakeKlavis) -> None:
    """Ours: one broken entry hides no other, unknown and missing fields harm nobody."""
    provider.offered += [{"description": "nameless"}, "text", {"name": "Bare"}, None]
    found = ask(provider, lambda api: api.catalogue())
    assert [one.name for one in found] == ["Gmail", "Slack", "Weather", "Bare"]
    assert found[0].auth_needed
    assert not found[3].auth_needed


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b"{}", errors.KeyRefused),
        (403, b"<html>", errors.KeyRefused),
        (404, b"{}", errors.NotThere),
        (422, b'{"detail": [{"loc": ["body", "serverName"], "msg": "m"}]}', errors.NotAccepted),
        (422, b'{"detail": "secret words"}', errors.NotAccepted),
        (429, b"{}", errors.TooManyRequests),
        (500, b"oops", errors.KlavisUnavailable),
        (302, b"", errors.KlavisAnswerUnreadable),
        (200, b"not json", errors.KlavisAnswerUnreadable),
        (200, b'["a list"]', errors.KlavisAnswerUnreadable),
        (200, b'{"servers": {"a": 1}}', errors.KlavisAnswerUnreadable),
        (200, b'{"servers": [], "servers": []}', errors.KlavisAnswerUnreadable),
    ],
)
def test_every_failure_has_a_type(
    provider: FakeKlavis, status: int, body: bytes, expected: type[errors.KlavisError]
) -> None:
    """Ours: and none tells what the provider wrote, or the key."""
    provider.fail("GET", "/mcp-server/servers", status=status, body=body, times=99)
    with pytest.raises(expected) as caught:
        ask(provider, lambda api: api.catalogue())
    assert type(caught.value) is expected
    text = f"{caught.value} {caught.value.details} {caught.value.__cause__!r}"
    assert "secret words" not in text
    assert KEY not in text


def test_a_validation_error_names_its_fields(provider: FakeKlavis) -> None:
    """Ours: the names alone."""
    with pytest.raises(errors.NotAccepted, match="serverName"):
        ask(
            provider,
            lambda api: api.create_instance(server_name="Nobody", user_id="u", is_read_only=False),
        )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_does_no_more_twice_is_asked_again(provider: FakeKlavis, status: int) -> None:
    """Ours: reading, deleting, and making an instance."""
    waits: list[float] = []
    provider.fail("GET", "/mcp-server/servers", status=status, times=2)
    assert ask(provider, lambda api: api.catalogue(), waits=waits)
    assert len(waits) == 2
    assert waits[1] > waits[0]
    provider.fail("POST", "/mcp-server/instance/create", status=status)
    made = ask(
        provider,
        lambda api: api.create_instance(server_name="Gmail", user_id="u", is_read_only=False),
    )
    provider.fail("DELETE", "/mcp-server/instance/", status=status)
    ask(provider, lambda api: api.delete_instance(made.instance_id))
    assert not provider.instances


def test_what_may_have_been_done_is_not_asked_again(provider: FakeKlavis) -> None:
    """Ours: several services behind one server would be made twice."""
    provider.fail("POST", "/mcp-server/strata/create", status=500, times=1)
    with pytest.raises(errors.KlavisUnavailable):
        ask(provider, lambda api: api.create_strata(user_id="u", servers=["Gmail"]))
    assert len(provider.paths("POST")) == 1


def test_attempts_end(provider: FakeKlavis) -> None:
    """Ours: three, and then the person is told."""
    provider.fail("GET", "/mcp-server/servers", status=503, times=99)
    with pytest.raises(errors.KlavisUnavailable):
        ask(provider, lambda api: api.catalogue())
    assert len(provider.requests) == 3


def test_the_provider_says_how_long_to_wait(provider: FakeKlavis) -> None:
    """Ours: Retry-After counts; one that is too far away is told instead of waited for."""
    waits: list[float] = []
    provider.fail("GET", "/mcp-server/servers", status=429, headers={"retry-after": "7"})
    ask(provider, lambda api: api.catalogue(), waits=waits)
    assert waits == [7.0]
    provider.fail("GET", "/mcp-server/servers", status=429, headers={"retry-after": "3600"})
    with pytest.raises(errors.TooManyRequests) as caught:
        ask(provider, lambda api: api.catalogue(), waits=waits)
    assert caught.value.retry_after_seconds == 3600
    assert waits == [7.0]


def test_nobody_there_is_told_in_plain_words(provider: FakeKlavis) -> None:
    """Ours."""
    provider.stop()
    with pytest.raises(errors.KlavisUnavailable) as caught:
        ask(provider, lambda api: api.catalogue())
    assert caught.value.message == errors.KlavisUnavailable.default_message


def test_the_key_and_the_ids_are_in_no_log(
    provider: FakeKlavis, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-117: at no level that anybody sets."""
    caplog.set_level(logging.INFO)
    provider.fail("GET", "/mcp-server/servers", status=500, times=9)
    with pytest.raises(errors.KlavisUnavailable):
        ask(provider, lambda api: api.catalogue())
    assert KEY not in caplog.text
