"""Runs one stdio server as a confined child, and makes sure that it ends with its owner.

Started by path with `python -I -S`, so only the standard library is at hand and nothing of the platform is imported.
Arguments: the descriptor of the lifeline, the limits as JSON, a folder to remove at the end (or nothing), and the
program with its arguments.

The process stays between the platform and the program. It holds the read end of a pipe whose write end only the
platform has: when the platform closes it, crashes or is killed, the read ends, and this process ends the program and
all its descendants (also those in sessions of their own, because on Linux orphans of this process are given to it).
What the platform writes before says that it ends itself, and soon.
The program's standard streams are the ones given to this process, which keeps none of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_GRACE_SECONDS = 2.0
_HURRIED_GRACE_SECONDS = 1.0
CANNOT_RUN = 127
"""What a shell says, too, of a program that is not there."""
CANNOT_RUN_WORDS = "cannot run "
SIGNALS_FROM = 128


def main(argv: list[str]) -> int:
    """Run argv[3:] under the limits of argv[1] until it ends or the lifeline argv[0] does; its exit code."""
    lifeline, limits, scratch, program = int(argv[0]), json.loads(argv[1]), argv[2], argv[3:]
    os.set_inheritable(lifeline, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    # The owner ends us by the lifeline; a signal to the group must not leave the program without its keeper.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))

    child = os.fork()
    if child == 0:
        _become(program, limits)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)

    code = None
    while code is None:
        ready = _wait([lifeline, wakeup_read])
        if lifeline in ready or stopped:
            is_hurried = lifeline in ready and os.read(lifeline, 1)
            code = _stop(child, _HURRIED_GRACE_SECONDS if is_hurried else _GRACE_SECONDS)
        elif wakeup_read in ready:
            os.read(wakeup_read, 512)
            code = _reap(child)
    _kill_descendants()
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return code


def _become(program: list[str], limits: dict[str, int]) -> None:
    """Turn the forked child into the program; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        keeper = os.getppid()
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        os.umask(0o077)
        _limit(resource.RLIMIT_CORE, 0)
        # Data, not address space: interpreters with a JIT reserve far more addresses than they ever fill.
        _limit(resource.RLIMIT_DATA, limits["memory_bytes"])
        _limit(resource.RLIMIT_NOFILE, limits["open_files"])
        _limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
        _limit(resource.RLIMIT_CPU, limits["cpu_seconds"])
        # The kernel counts all threads of the user, the platform's own included.
        _limit(resource.RLIMIT_NPROC, _threads_of_user() + limits["processes"])
        if os.getppid() != keeper:
            os._exit(CANNOT_RUN)
        os.execve(program[0], program, dict(os.environ))  # noqa: S606  no shell is the point
    except Exception as error:  # noqa: BLE001  the finally below leaves by _exit, whatever it is
        with contextlib.suppress(OSError):
            os.write(2, f"{CANNOT_RUN_WORDS}{program[0]}: {error}\n".encode())
    finally:
        os._exit(CANNOT_RUN)


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _threads_of_user() -> int:
    count, user = 0, os.getuid()
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if entry.stat().st_uid == user:
                        count += len(list(pathlib.Path(f"/proc/{entry.name}/task").iterdir()))
    return count or 4096


def _wait(descriptors: list[int]) -> list[int]:
    ready, _, _ = select.select(descriptors, [], [])
    return ready


def _reap(child: int) -> int | None:
    """Collect every process that ended; the exit code of the program if it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code if code is not None else 0
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            code = SIGNALS_FROM - code if code < 0 else code


def _stop(child: int, grace_seconds: float) -> int:
    """End the program's group: politely, then for good."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while time.monotonic() < deadline:
        code = _reap(child)
        if code is not None:
            return code
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return SIGNALS_FROM + signal.SIGKILL


def _kill_descendants() -> None:
    """Kill and collect whatever is left, generation by generation, as orphans come to us."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _children() -> list[int]:
    try:
        listed = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in listed.split()]


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
