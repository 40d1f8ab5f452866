"""Streams to syslog receivers: whole messages over TLS, to nobody else, and taken only once they were read."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from audit.models import StreamCursor
from audit.streams import forwarding
from audit.streams.events import event_for_test
from audit.streams.syslog import framed, message_of
from tests.audit.streams.receivers import Authority, SyslogReceiver, make_authority
from tests.audit.streams.sending import make, make_due, state_of, write
from tests.factories import Tenant
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


@pytest.fixture
def syslog(authority: Authority, tmp_path: Path) -> Iterator[SyslogReceiver]:
    receiver = SyslogReceiver(authority, tmp_path)
    yield receiver
    receiver.stop()


def test_a_syslog_receiver_gets_whole_messages(
    tenant: Tenant, syslog: SyslogReceiver, authority: Authority
) -> None:
    """RFC 5424 over TLS, octet-counted; the certificate is checked against the given authority."""
    make(tenant, syslog.target, "syslog", ca_certificates=f"# Behörde\n{authority.ca}")
    entries = write(tenant, "a", "b")
    forwarding.send_due()
    found = [m for m in syslog.messages if " tool_call.finished " in m]
    assert [entry.pk for entry in entries] == [UUID(m.split('uid="')[1][:36]) for m in found]
    head, _, text = found[0].partition("] ")
    assert head.startswith("<109>1 ")
    assert json.loads(text)["entry"]["tool_name"] == "a"


def test_a_receiver_that_is_somebody_else_gets_nothing(
    tenant: Tenant, syslog: SyslogReceiver
) -> None:
    """A certificate of another authority ends it before a byte of the log is sent."""
    stream, _ = make(tenant, syslog.target, "syslog", ca_certificates=make_authority().ca)
    write(tenant, "a")
    forwarding.send_due()
    assert syslog.messages == []
    assert state_of(stream).last_error == "Its certificate is not trusted, or is another host's."


def test_a_receiver_that_never_reads_has_taken_nothing(
    tenant: Tenant,
    syslog: SyslogReceiver,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What lies unread in buffers of the line is no yes: it is sent again."""
    monkeypatch.setattr("audit.streams.syslog._ACKNOWLEDGE_SECONDS", 0.2)
    monkeypatch.setattr(forwarding, "SEND_SECONDS", 2.0)
    stream, _ = make(tenant, syslog.target, "syslog", ca_certificates=authority.ca)
    before = list(StreamCursor.objects.filter(stream=stream).values_list("chain_id", "seq"))
    write(tenant, *(f"{number:0250}" for number in range(450)))
    syslog.stalls = True
    forwarding.send_due()
    assert state_of(stream).failures == 1
    after = list(StreamCursor.objects.filter(stream=stream).values_list("chain_id", "seq"))
    assert after == before


def test_a_receiver_that_cuts_the_connection_gets_it_again(
    tenant: Tenant, syslog: SyslogReceiver, authority: Authority
) -> None:
    stream, _ = make(tenant, syslog.target, "syslog", ca_certificates=authority.ca)
    # Larger than what a socket takes in without a reader.
    write(tenant, *(f"{number:0200}" for number in range(300)))
    syslog.drops = 1
    forwarding.send_due()
    assert state_of(stream).failures == 1
    assert state_of(stream).last_error == "It ended the connection."
    make_due(stream)
    forwarding.send_due()
    assert len([m for m in syslog.messages if " tool_call.finished " in m]) == 300


def test_an_entry_that_is_too_long_for_a_receiver_is_told(
    tenant: Tenant, syslog: SyslogReceiver, authority: Authority
) -> None:
    """REL-2963: syslog-ng ends the connection at such a message, each time, and the page did not say why."""
    stream, _ = make(tenant, syslog.target, "syslog", ca_certificates=authority.ca)
    write(tenant, "tool", details={"after": "x" * 300_000})
    syslog.drops = 1
    forwarding.send_due()
    assert re.search(r"The longest entry has 30\d,\d+ bytes", state_of(stream).last_error)


def test_we_show_a_certificate_where_one_is_asked_for(
    tenant: Tenant, authority: Authority, tmp_path: Path
) -> None:
    receiver = SyslogReceiver(authority, tmp_path, asks_for_client=True)
    try:
        make(
            tenant,
            receiver.target,
            "syslog",
            ca_certificates=authority.ca,
            client_certificate=authority.certificate,
            client_key=authority.key,
        )
        write(tenant, "a")
        forwarding.send_due()
        assert receiver.clients[0]
        assert receiver.messages
    finally:
        receiver.stop()


def test_a_receiver_that_refuses_our_certificate_has_taken_nothing(
    tenant: Tenant, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1389: in TLS 1.3 it says so only after the connection stands, and the log may be on its way by then."""
    monkeypatch.setattr("audit.streams.syslog.CONNECT_SECONDS", PATIENCE)
    receiver = SyslogReceiver(authority, tmp_path, asks_for_client=True)
    try:
        stream, _ = make(tenant, receiver.target, "syslog", ca_certificates=authority.ca)
        before = list(StreamCursor.objects.filter(stream=stream).values_list("chain_id", "seq"))
        write(tenant, "a")
        forwarding.send_due()
        assert receiver.messages == []
        assert state_of(stream).failures == 1
        assert state_of(stream).last_error == "It ended the connection."
        after = list(StreamCursor.objects.filter(stream=stream).values_list("chain_id", "seq"))
        assert after == before
    finally:
        receiver.stop()


@pytest.mark.parametrize("is_let_in", [False, True])
def test_a_refusal_that_comes_after_our_goodbye_is_no_yes(
    tenant: Tenant,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_let_in: bool,
) -> None:
    """REL-1389: a busy receiver looks late at who we are. Its machine has acknowledged everything by then."""
    monkeypatch.setattr("audit.streams.syslog.CONNECT_SECONDS", PATIENCE)
    receiver = SyslogReceiver(authority, tmp_path, asks_for_client=True)
    receiver.is_late = True
    try:
        stream, _ = make(
            tenant,
            receiver.target,
            "syslog",
            ca_certificates=authority.ca,
            client_certificate=authority.certificate if is_let_in else "",
            client_key=authority.key if is_let_in else "",
        )
        write(tenant, "a")
        forwarding.send_due()
        assert bool(receiver.messages) is is_let_in
        assert bool(state_of(stream).sent) is is_let_in
        assert state_of(stream).last_error == ("" if is_let_in else "It ended the connection.")
    finally:
        receiver.stop()


@pytest.mark.parametrize("is_let_in", [False, True])
def test_a_receiver_that_never_says_goodbye_has_let_us_in_at_least(
    tenant: Tenant,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_let_in: bool,
) -> None:
    """REL-1389: or nothing was taken. It may still refuse us."""
    monkeypatch.setattr("audit.streams.syslog.CONNECT_SECONDS", 2.0)
    receiver = SyslogReceiver(authority, tmp_path)
    receiver.stalls = True
    if not is_let_in:
        receiver.give_no_tickets()
    try:
        stream, _ = make(tenant, receiver.target, "syslog", ca_certificates=authority.ca)
        write(tenant, "a")
        forwarding.send_due()
        assert bool(state_of(stream).sent) is is_let_in
        missing = "It did not end the connection in time."
        assert state_of(stream).last_error == ("" if is_let_in else missing)
    finally:
        receiver.stop()


@pytest.mark.parametrize("fault", [TimeoutError(110, "timed out"), ssl.SSLError("broken")])
def test_a_fault_before_everything_is_acknowledged_is_no_yes(
    tenant: Tenant,
    syslog: SyslogReceiver,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    fault: OSError,
) -> None:
    """REL-1389: a line that goes dead is told as a timeout, which a missing goodbye is, too."""

    async def fail(_writer: object) -> None:
        raise fault

    monkeypatch.setattr("audit.streams.syslog._until_acknowledged", fail)
    stream, _ = make(tenant, syslog.target, "syslog", ca_certificates=authority.ca)
    write(tenant, "a")
    forwarding.send_due()
    assert state_of(stream).failures == 1
    assert state_of(stream).sent == 0


def test_no_value_forges_a_line() -> None:
    """SEC-106: CR LF, ANSI, bidi and quotes in names stay inside their message."""
    event = event_for_test(UUID(int=1))
    nasty = 'x\r\n<13>1 - forged - - - -\x1b[31m\u202e"]\x7f\u2028'
    nasty_event = type(event)(
        **{
            **{name: getattr(event, name) for name in event.__dataclass_fields__},
            "action": nasty,
            "record": {"tool_name": nasty},
        }
    )
    message = message_of(nasty_event, hostname="a b\nc")
    assert all(0x20 <= byte < 0x7F for byte in message)
    assert message.count(b"<13>") == 2, "once in the header's word, once in the JSON text"
    assert json.loads(message.partition(b"] ")[2])["entry"]["tool_name"] == nasty
    assert framed(message) == str(len(message)).encode() + b" " + message
