#!/usr/bin/env python3
"""Every command of Trellis; `python3 manage.py up` is all it takes on a fresh machine.

Runs on bare Python 3.11+: outside its own virtual environment it first makes or updates that, then goes on inside.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING

from config import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator


def main(argv: list[str]) -> int:
    """Run one command and give its exit code."""
    command = argv[1] if len(argv) > 1 else "help"
    if argv[1:] == ["generate_keys"]:
        return _generate_keys()
    is_test = command == "test"
    needs_tools = command in bootstrap.TOOL_COMMANDS
    if not bootstrap.is_inside() or needs_tools or command == "up":
        try:
            bootstrap.prepare(
                "dev" if needs_tools else "runtime", with_web=command in bootstrap.WEB_COMMANDS
            )
        except bootstrap.SetupFailed as error:
            print(f"Trellis cannot be set up. {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
    if not bootstrap.is_inside():
        bootstrap.reexec(argv)
    _speak_utf8()
    if is_test:
        from config.suite import run_suite

        return run_suite(argv[2:])
    if command == "up":
        _announce_address(argv[2:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Imports make hundreds of thousands of objects and hardly any garbage to look for meanwhile.
    gc.set_threshold(50_000)
    from django.core.management import execute_from_command_line

    from workspaces.database.row_security import everywhere
    from workspaces.process.call_stack import give_room

    try:
        with everywhere(), _written_out():  # whoever may run commands here owns the platform
            give_room(execute_from_command_line)(argv)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _has_reader_left():
            return 141  # as if SIGPIPE had ended it
        if (explanation := _explain(error)) is None:
            raise
        print(explanation, file=sys.stderr)
        return 1
    finally:
        _close_connections()
    return 0


def _speak_utf8() -> None:
    """Read and write UTF-8, also where the machine's locale is an older one, which lacks most signs of a chat."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _generate_keys() -> int:
    """As the command does, but without settings: these ask for the very keys that somebody is about to make."""
    from config.keys import generate_keys

    for name, value in generate_keys().items():
        print(f"{name}={value}")
    return 0


def _explain(error: Exception) -> str | None:
    """One line for what the database refuses and an operator can mend; None for everything else."""
    from config.installation.database_faults import find_fault

    fault = find_fault(error)
    return None if fault is None else f"This cannot be done: {fault.text}. {fault.advice}"


@contextmanager
def _written_out() -> Iterator[None]:
    """Write what is printed before Python ends, which would complain if nobody reads it any more."""
    try:
        yield
    except SystemExit:  # as after --help
        sys.stdout.flush()
        raise
    sys.stdout.flush()


def _has_reader_left() -> bool:
    """Whether nobody reads what is printed any more, as behind `| head`. Then it goes nowhere from here on."""
    output = select.poll()
    output.register(sys.stdout, 0)  # errors are told unasked
    if not output.poll(0):
        return False
    # Python flushes once more when it ends, and would complain about it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _close_connections() -> None:
    """End what a command has opened, while the interpreter still has threads to do it with."""
    runtime = sys.modules.get("mcp_servers.client.connections.runtime")
    if runtime is not None:
        runtime.shutdown()


def _announce_address(options: list[str]) -> None:
    """Tell the settings, which are read before the command, where it is going to listen."""
    from argparse import ArgumentParser

    parser = ArgumentParser(add_help=False)
    parser.add_argument("--port")
    parser.add_argument("--host")
    found, _ = parser.parse_known_args(options)
    for name, value in (("TRELLIS_PORT", found.port), ("TRELLIS_HOST", found.host)):
        if value is not None:
            os.environ[name] = value


if __name__ == "__main__":
    sys.exit(main(sys.argv))
