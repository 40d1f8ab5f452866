"""A second terminal that has loaded Django already: each piece of code runs in a copy of this process, as a command would.

python -m tests.e2e.second_shell

It reads a line of JSON for each piece of code, and answers with how it ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any


def main() -> None:
    """Serve until its input ends."""
    import django

    django.setup()
    # A copy has no thread of this process and no connection, so this one has neither.
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                json.dump(_run(json.loads(line)), pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            output = pipe.read()
        os.waitpid(child, 0)
        sys.stdout.write((output or json.dumps({"code": 1, "out": "", "err": "It died."})) + "\n")
        sys.stdout.flush()


def _run(code: str) -> dict[str, Any]:
    from manage import main as manage

    out, err = io.StringIO(), io.StringIO()
    ended = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            ended = manage(["manage.py", "shell", "-c", code])
        except BaseException:
            traceback.print_exc()
            ended = 1
    return {"code": ended, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    main()
