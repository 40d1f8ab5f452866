"""Stdio MCP servers that misbehave, each by one name. Run by path; standard library only.

python stdio_zoo.py MODE
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from typing import Any

TOOL = {
    "name": "probe",
    "description": "Says what it sees.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def sights() -> dict[str, Any]:
    """What a child can see of its surroundings."""
    status = open("/proc/self/status").read()
    return {
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
            for name in ("DATA", "NPROC", "NOFILE", "FSIZE", "CPU", "CORE")
        },
        "session": os.getsid(0) == os.getpid(),
        "no_new_privs": "NoNewPrivs:\t1" in status,
        "pid": os.getpid(),
    }


def call(mode: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """The result of tools/call in this mode; None for no answer."""
    arguments = request["params"].get("arguments") or {}
    if mode == "die_in_call":
        os._exit(3)
    if mode == "hang_in_call":
        time.sleep(60)
    if mode == "endless_line":
        while True:
            sys.stdout.write("x" * 65536)
    if mode == "talkative":
        values = {"level": "info", "data": "x"}
        for _ in range(int(arguments["times"])):
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": values})
    if mode == "long_result":
        return {"content": [{"type": "text", "text": "x" * int(arguments["size"])}]}
    if mode == "eat_memory":
        try:
            blob = bytearray(3 * 2**30)
            blob[::4096] = b"x" * len(blob[::4096])
        except MemoryError:
            return {"content": [{"type": "text", "text": "MemoryError"}]}
    if mode == "write_file":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            with open("large", "wb") as file:
                for _ in range(200):
                    file.write(b"x" * 2**20)
        except OSError as error:
            return {"content": [{"type": "text", "text": f"OSError {error.errno}"}]}
    return {"content": [{"type": "text", "text": json.dumps(sights())}]}


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "probe"
    if mode.startswith("counted:"):
        _, folder, mode = mode.split(":")
        with open(f"{folder}/starts", "a+") as file:
            file.seek(0)
            has_started = bool(file.read())
            file.write("x")
        if has_started and mode == "hang_when_started_again":
            time.sleep(60)
    if mode == "exit_unread":
        select.select([sys.stdin], [], [])
        sys.stderr.write("the key is missing\n")
        sys.exit(2)
    if mode == "exit_at_once":
        sys.stderr.write("configuration missing: SECRET_THING\n")
        sys.exit(2)
    if mode.startswith("complain"):
        sys.stderr.write("the configuration file is missing\n")
        sys.stderr.flush()
        if mode == "complain_and_exit":
            sys.exit(3)
        mode = "silent"
    if mode in {"ignore_term", "ignore_term_with_orphan"}:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode in {"orphan", "ignore_term_with_orphan"}:
        child = subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL)
        with open("orphan.pid", "w") as file:
            file.write(str(child.pid))
    if mode == "greeting":
        print("Welcome to my server!")
        print("{not json")
        sys.stdout.buffer.write(b"\xff\xfe binary\n")
        sys.stdout.flush()
    if mode == "flood_stderr":
        for number in range(100_000):
            sys.stderr.write(f"line {number} of noise\n")
    if mode == "flood_stdout":
        for number in range(20_000):
            sys.stdout.write(f"noise {number}\n")
        sys.stdout.flush()
    for line in sys.stdin:
        if mode == "silent":
            continue
        request = json.loads(line)
        method, number = request.get("method"), request.get("id")
        if number is None:
            continue
        if mode == "hang_when_started_again":
            sys.stderr.write("no such question\n")
            sys.exit(1)
        if mode == "exit_at_the_greeting" and method == "initialize":
            sys.stderr.write("the key is missing\n")
            sys.exit(2)
        if mode == "exit_at_the_greeting":
            continue
        if mode == "unquestioned" and method not in ("initialize", "tools/list", "tools/call"):
            sys.exit(1)
        result: dict[str, Any] | None
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "zoo", "version": mode},
            }
        elif method == "tools/list":
            result = {"tools": [TOOL]}
        elif method == "tools/call":
            result = call(mode, request)
        elif method == "ping":
            result = {}
        else:
            send(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "error": {"code": -32601, "message": "Method not found"},
                }
            )
            continue
        if result is not None:
            send({"jsonrpc": "2.0", "id": number, "result": result})
        if mode == "exit_after_hello":
            sys.exit(0)
    if mode in {"ignore_term", "ignore_term_with_orphan"}:
        time.sleep(300)


main()
