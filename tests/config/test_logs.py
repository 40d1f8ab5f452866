"""Nothing secret reaches a log line, whoever writes it and however."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from config.logs import configure_logging
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


def test_json_lines_are_json(capsys: Any) -> None:
    """Ours: one object a line, with time, level and logger."""
    configure_logging(level="INFO", as_json=True)
    try:
        structlog.get_logger("ours").info("hello", number=1)
        line = json.loads(capsys.readouterr().err.strip().splitlines()[-1])
    finally:
        configure_logging(level="WARNING", as_json=False)
    assert line["event"] == "hello"
    assert {"timestamp", "level", "logger", "number"} <= set(line)
