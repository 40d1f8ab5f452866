"""Nothing secret reaches a log line, whoever writes it and however."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import mcp.client.session
import mcp.client.streamable_http
import mcp_types
import pytest
import structlog
from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.worker.consumer import consumer
from django.core.exceptions import TooManyFieldsSent
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory
from django.test.utils import override_settings
from django.urls import URLResolver, get_resolver, path
from django.utils.log import log_response
from opentelemetry.propagate import extract
from rest_framework.decorators import api_view, authentication_classes, permission_classes
from rest_framework.request import Request

from audit.errors import AuditUnavailable
from config.env import ROOT
from config.serving import errors
from config.telemetry.log_writing import write_beside, write_the_rest
from config.telemetry.logs import MOST_A_MINUTE, configure_logging
from tests.fakes.mcp_server import Receive, Scope, Send, listening, reply
from workspaces import outbound
from workspaces.errors import PermissionDenied
from workspaces.redaction import remember_secret

SECRET = "canary-4f1c9a7e2b"


@pytest.fixture(params=["console", "json"])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """The log as text, in both formats; everything is put back afterwards."""
    remember_secret(SECRET, workspace_id="of any workspace")
    configure_logging(level="DEBUG", as_json=request.param == "json")
    handler = logging.getLogger().handlers[-1]
    assert isinstance(handler, logging.StreamHandler)
    out = io.StringIO()
    handler.setStream(out)
    yield out
    configure_logging(level="WARNING", as_json=False)


def fail_with_a_secret() -> None:
    password = SECRET
    raise ValueError(f"cannot open with {password}")


def test_known_secrets_are_masked_in_every_kind_of_line(written: io.StringIO) -> None:
    """SEC-94: message, arguments, extra fields, structured fields, exceptions; ours and foreign ones."""
    plain = logging.getLogger("a.library")
    plain.warning("sent %s", SECRET)
    plain.warning(f"sent {SECRET}")
    plain.warning("sent", extra={"header": f"Bearer {SECRET}", "turn": "shown"})
    structured = structlog.get_logger("ours")
    structured.warning("sent", value=SECRET, nested={"list": [SECRET]}, authorization="x" * 20)
    try:
        fail_with_a_secret()
    except ValueError:
        plain.exception("failed")
        structured.exception("failed")
    text = written.getvalue()
    assert text.count("failed") >= 2
    assert "shown" in text
    assert SECRET not in text
    assert "x" * 20 not in text


async def test_no_line_shows_what_other_servers_answer(written: io.StringIO) -> None:
    """SEC-687: sessions, cookies and codes stand in the headers; not even the most talkative log has them."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            named = {"mcp-session-id": "a-session-id", "set-cookie": "a=a-cookie"}
            await reply(send, 302, headers={**named, "location": "/?code=a-code"})

    loopback = (ip_network("127.0.0.0/8"),)
    with listening(app) as server:
        async with outbound.client(networks=loopback, headers={"x-key": "a-key"}) as client:
            answer = await client.post(f"{server.origin}/a-path", content=b"a-body")
    assert answer.status_code == 302
    logging.getLogger("ours").debug("shown")
    text = written.getvalue()
    assert "shown" in text
    for words in ("a-session-id", "a-cookie", "a-code", "a-key", "a-path", "a-body"):
        assert words not in text


@pytest.mark.parametrize("module", [mcp.client.session, mcp.client.streamable_http])
def test_a_server_cannot_fill_the_log(written: io.StringIO, module: Any) -> None:
    """SEC-688: the SDK writes a line with a traceback for each message that it cannot read."""
    for number in range(500):
        module.logger.error("Error parsing message %d", number)
    logging.getLogger("mcp_servers.ours").error("shown")
    lines = written.getvalue().splitlines()
    listed = [line for line in lines if "Error parsing" in line]
    # A minute may end meanwhile.
    assert MOST_A_MINUTE <= len(listed) <= 2 * MOST_A_MINUTE
    assert "further lines of this minute are left out" in listed[MOST_A_MINUTE - 1]
    assert any("shown" in line for line in lines)


@pytest.mark.parametrize("module", [mcp.client.session, mcp.client.streamable_http])
def test_a_servers_words_are_not_in_the_log(written: io.StringIO, module: Any) -> None:
    """SEC-861: the SDK's traceback shows what a server sent and what could not be read in it."""
    try:
        mcp_types.ProgressNotificationParams.model_validate(
            {"progressToken": 1, "progress": "what a person wrote"}
        )
    except ValueError:
        module.logger.warning("Failed to validate notification", exc_info=True)
    text = written.getvalue()
    assert "Failed to validate notification" in text
    assert "what a person wrote" not in text
    assert "Traceback" not in text


def test_a_stranger_cannot_fill_the_log(written: io.StringIO) -> None:
    """SEC-942: a form of too many fields was an error with a traceback each time, and so was one that is too large."""
    logger = logging.getLogger("django.security.TooManyFieldsSent")
    for _ in range(500):
        try:
            raise TooManyFieldsSent("Too many")
        except TooManyFieldsSent as error:
            logger.error(str(error), exc_info=error)  # as Django does
    text = written.getvalue()
    assert "Traceback" not in text
    assert 0 < text.count("Too many") <= 2 * MOST_A_MINUTE  # a minute may end meanwhile
    logging.getLogger("django.security.SuspiciousFileOperation").error("Something else")
    assert "Something else" in written.getvalue()


def test_what_callers_send_for_tracing_is_no_line(written: io.StringIO) -> None:
    """SEC-941: an MCP client sends it with a call. The library warned of each entry that it could not read, word by word."""
    extract(
        {
            "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
            "tracestate": "what a person wrote",
            "baggage": "what a person wrote",
        }
    )
    assert not written.getvalue()


def test_a_pool_that_cannot_connect_writes_a_line_and_not_one_for_each_try(
    written: io.StringIO,
) -> None:
    """REL-2238: half a line a second, of each process. Another reason is told."""
    pool = logging.getLogger("psycopg.pool")
    for reason in ("refused", "refused", "starting up"):
        pool.warning("error connecting in %r: %s", "pool-1", reason)
    pool.warning("discarding closed connection: %s", "one")
    listed = written.getvalue().splitlines()
    assert ["refused" in line for line in listed] == [True, False, False]
    assert "starting up" in listed[1]


def test_a_worker_without_redis_writes_a_line_and_not_one_for_each_try(
    written: io.StringIO,
) -> None:
    """REL-2321: each line names another time until the next try. Another reason is told, and so is each loss."""
    for tries, reason in enumerate(("refused", "refused", "no such host")):
        step = consumer.CONNECTION_RETRY_STEP.format(
            when=f"in {tries}", retries=tries, max_retries=9
        )
        consumer.error(consumer.CONNECTION_ERROR, "redis://r", OSError(reason), step)
    consumer.warn("%s (%r)", consumer.CONNECTION_RETRY, OSError("dropped"))
    text = written.getvalue()
    assert [text.count(one) for one in ("refused", "no such host", "dropped")] == [1, 1, 1]


def test_a_collector_that_is_away_is_told_once_for_each_reason(written: io.StringIO) -> None:
    """REL-2354: each batch of traces, every five seconds, wrote a line for each try."""
    lines = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    for pause in (1.1, 2.3):
        for reason in ("refused", "no such host"):
            lines.warning("Transient error %s, retrying in %.2fs.", OSError(reason), pause)
        lines.error("Failed to export spans batch due to timeout, max retries or shutdown.")
    text = written.getvalue()
    assert [text.count(one) for one in ("refused", "no such host", "Failed")] == [1, 1, 1]


def test_plans_of_celery_for_its_next_version_are_no_lines(written: io.StringIO) -> None:
    """REL-2352: it tells them anew at each loss of Redis. Other warnings stay."""
    lines = logging.getLogger("py.warnings")
    for category, text in (
        (CPendingDeprecationWarning, consumer.CANCEL_TASKS_BY_DEFAULT),
        (UserWarning, "a disk is slow"),
    ):
        lines.warning("%s", warnings.formatwarning(text, category, "worker.py", 7))
    text = written.getvalue()
    assert "late acknowledgement" not in text
    assert "a disk is slow" in text


def test_a_message_that_a_worker_cannot_handle_is_named_alone(written: io.StringIO) -> None:
    """SEC-1221: Celery writes all that it holds, with a traceback."""
    held = "what a task was given"
    unknown = KeyError("chat.tasks.of_tomorrow")
    try:
        raise unknown
    except KeyError:
        consumer.error(consumer.UNKNOWN_TASK_ERROR, unknown, held, held, held, exc_info=True)
    consumer.error(consumer.INVALID_TASK_ERROR, ValueError(held), held, exc_info=True)
    consumer.warn(consumer.UNKNOWN_FORMAT, held)
    consumer.crit(consumer.MESSAGE_DECODE_ERROR, ValueError(held), "json", "utf-8", held, held)
    consumer.error(consumer.CONNECTION_ERROR, "redis://r", OSError("a wire is cut"), "")
    text = written.getvalue()
    assert "chat.tasks.of_tomorrow" in text
    assert text.count("ValueError") == 2
    assert "no task" in text
    assert "a wire is cut" in text
    assert held not in text
    assert "Traceback" not in text


def test_a_request_that_fails_is_named_without_its_query(written: io.StringIO) -> None:
    """SEC-683: there stand an issuer's codes; Django hands the whole request on when the database is away."""
    request = RequestFactory().get("/oauth/mcp/1/callback?code=abc123def&state=ghi456")
    log_response("%s: %s", "Oh", request.path, response=HttpResponse(status=503), request=request)
    text = written.getvalue()
    assert "GET /oauth/mcp/1/callback" in text
    assert "abc123def" not in text
    assert "ghi456" not in text


def fail(_request: HttpRequest) -> HttpResponse:
    raise ValueError("it broke")


def lose_database(_request: HttpRequest) -> HttpResponse:
    raise OperationalError("the connection is lost")


def send_a_part(_request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("half of it")

    return StreamingHttpResponse(parts())


def send_while_allowed(_request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise PermissionDenied

    return StreamingHttpResponse(parts())


@api_view()
@authentication_classes([])
@permission_classes([])
def miss_the_log(_request: Request) -> HttpResponse:
    raise AuditUnavailable from OperationalError("the connection is lost")


def be_away(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=503)


handler500 = errors.server_error
urlpatterns = [
    path("fail/", fail),
    path("away/", be_away),
    path("lost/", lose_database),
    path("part/", send_a_part),
    path("refused/", send_while_allowed),
    path("api/lost/", miss_the_log),
]


@override_settings(
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["config.serving.middleware.RequestLogMiddleware"],
    DEBUG=False,
)
def test_a_request_that_fails_is_told_once(written: io.StringIO) -> None:
    """REL-2002: whoever counts errors counts one, and reads one traceback."""
    client = Client(raise_request_exception=False)
    client.get("/fail/")
    client.get("/away/")
    assert [client.get(one).status_code for one in ("/lost/", "/api/lost/")] == [503, 503]
    text = written.getvalue()
    failed = [line for line in text.splitlines() if "request_failed" in line]
    codes = [re.search(r"code\W+(\d+)", line) for line in failed]
    assert [code and code[1] for code in codes] == ["500", "503", "503"], "what was answered"
    assert "ValueError: it broke" in text
    assert "Internal Server Error: /fail/" not in text
    assert "Service Unavailable: /away/" not in text


@override_settings(
    ROOT_URLCONF=__name__, MIDDLEWARE=["config.serving.middleware.RequestLogMiddleware"]
)
def test_a_download_that_ends_early_is_told_once(written: io.StringIO) -> None:
    """REL-2002: by the request log, and not by Daphne as well, which still tells what failed elsewhere."""
    answer: Any = Client().get("/part/")
    with pytest.raises(ValueError, match="half of it") as broken:
        list(answer.streaming_content)
    daphne = logging.getLogger("daphne.server")
    for error in (broken.value, OSError("it fell over")):
        daphne.error("Exception inside application: %s", error, exc_info=error)
    text = written.getvalue()
    assert text.count("ValueError: half of it") == 1
    assert "it fell over" in text


@override_settings(
    ROOT_URLCONF=__name__, MIDDLEWARE=["config.serving.middleware.RequestLogMiddleware"]
)
def test_a_download_that_loses_its_right_is_a_line(written: io.StringIO) -> None:
    """REL-2002: without a traceback, and no error. Whoever runs Trellis has nothing to mend."""
    answer: Any = Client().get("/refused/")
    with pytest.raises(PermissionDenied) as refused:
        list(answer.streaming_content)
    logging.getLogger("daphne.server").error("Exception inside", exc_info=refused.value)
    text = written.getvalue()
    [line] = [one for one in text.splitlines() if "PermissionDenied" in one]
    assert "streaming_failed" in line
    assert "error" not in line
    assert "Traceback" not in text
    assert "Exception inside" not in text


def test_a_task_that_fails_is_told_once(written: io.StringIO) -> None:
    """REL-2002: its traceback stood in its line twice."""

    def break_down() -> None:
        raise ValueError("a task broke")

    Celery("apart", set_as_current=False).task(break_down, name="break_down").apply()
    assert written.getvalue().count("ValueError: a task broke") == 1


def test_no_line_has_a_link_that_lets_somebody_in(written: io.StringIO) -> None:
    """SEC-656: an invitation, a shared chat or a mail's link, in lines of requests and in what Django says of them."""
    secret = SECRET[::-1]
    links = []
    for route in routes():
        link = re.sub(r"<(?:str:)?(?:token|key)>|\(\?P<key>.*?\)(?=/)", secret, route)
        if link != route:
            links.append(re.sub(r"<.*?>|\(.*?\)", "1", link))
    assert len(links) > 10
    for link in links:
        assert secret in link
        structlog.get_logger("ours").info("request_started", request=f"GET /{link}")
        logging.getLogger("django.security.csrf").warning(
            "Forbidden (%s): %s", "no token", f"/{link}"
        )
        logging.getLogger("daphne").warning("%r for %s", object(), f"<request b'GET' b'/{link}'>")
    assert secret not in written.getvalue()
    logging.getLogger("ours").info(
        "a file at plans/shared/notes.txt, and /api/shared-chats/people/"
    )
    assert "plans/shared/notes.txt, and /api/shared-chats/people/" in written.getvalue()


def routes(resolver: URLResolver | None = None, place: str = "") -> Iterator[str]:
    """Every address, as it is written down."""
    for one in (resolver or get_resolver()).url_patterns:
        where = place + str(one.pattern).lstrip("^").rstrip("$")
        if isinstance(one, URLResolver):
            yield from routes(one, where)
        else:
            yield where


def test_a_traceback_shows_no_local_variables(written: io.StringIO) -> None:
    """SEC-96: not even those that nobody has marked as secret."""

    def inner() -> None:
        unmarked = "another-canary"
        if unmarked:
            raise RuntimeError("boom")

    try:
        inner()
    except RuntimeError:
        logging.getLogger("a.library").exception("failed")
        structlog.get_logger("ours").exception("failed")
    text = written.getvalue()
    assert "boom" in text
    assert "unmarked = 'another-canary'" not in text


@pytest.fixture
def usual_log() -> Iterator[None]:
    """Puts the log back onto the error stream that outlives the test, so ask for it before `capsys`."""
    yield
    configure_logging(level="WARNING", as_json=False)


def test_json_lines_are_json(usual_log: None, capsys: Any) -> None:
    """Ours: one object a line, with time, level and logger."""
    configure_logging(level="INFO", as_json=True)
    structlog.get_logger("ours").info("hello", number=1)
    line = json.loads(capsys.readouterr().err.strip().splitlines()[-1])
    assert line["event"] == "hello"
    assert {"timestamp", "level", "logger", "number"} <= set(line)


@pytest.fixture
def own_handlers() -> Iterator[None]:
    """The handlers of the root logger are the test's; those from before are put back."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers = []
    yield
    root.handlers = before


@pytest.mark.parametrize("kind", ["a stream that somebody closes", "a file of its own"])
def test_log_lines_never_go_into_another_file(
    own_handlers: None, tmp_path: Path, kind: str
) -> None:
    """REL-1811: the number of a file that was closed goes to the next one that is opened, such as the database."""
    log, other = tmp_path / "log", tmp_path / "database"
    if kind == "a file of its own":
        logging.getLogger().addHandler(logging.FileHandler(log))
        write_beside()
    else:
        with log.open("w") as stream:
            logging.getLogger().addHandler(logging.StreamHandler(stream))
            write_beside()
    with other.open("w"):
        logging.getLogger("ours").error("hello")
        write_the_rest()
    assert (log.read_text(), other.read_text()) == ("hello\n", "")


FLOOD = """
import logging, sys
from config.telemetry.log_writing import write_beside
from config.telemetry.logs import configure_logging
configure_logging(level="INFO", as_json=True)
write_beside()
for number in range(20_000):
    logging.getLogger("ours").warning("line %s", number)
sys.stdout.write("went on\\n")
sys.stdout.flush()
sys.stdin.readline()
"""


def test_a_log_that_nobody_reads_holds_nothing_up() -> None:
    """REL-1535: as a terminal that was stopped. Once it is read again, it says how many lines found no room."""
    with subprocess.Popen(
        [sys.executable, "-c", FLOOD],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as flooding:
        assert flooding.stdout is not None
        assert flooding.stderr is not None
        assert flooding.stdin is not None
        # Not one line of the log has been read.
        assert flooding.stdout.readline() == "went on\n"
        lines = []
        for text in flooding.stderr:
            lines.append(json.loads(text))
            if "lines" in lines[-1]:
                break
        flooding.stdin.write("end\n")
    *written, loss = lines
    assert [one["event"] for one in written[:2]] == ["line 0", "line 1"]
    assert loss["event"] == "log lines were left out"
    assert len(written) + loss["lines"] == 20_000
