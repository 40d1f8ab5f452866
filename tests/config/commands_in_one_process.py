"""Commands of manage.py, one after another in one process, which imports everything once.

python -m tests.config.commands_in_one_process: takes a JSON list of arguments a line, gives a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from typing import Any

from manage import main


def serve() -> None:
    """Run what is asked for until nothing more is."""
    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile() as written:
        for stream in (1, 2):
            os.dup2(written.fileno(), stream)
        for line in sys.stdin:
            code = _run(json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            written.seek(0)
            output = written.read().decode()
            written.seek(0)
            written.truncate()
            answers.write(f"{json.dumps({'code': code, 'output': output})}\n")
            answers.flush()


def _run(arguments: list[str]) -> Any:
    try:
        return main(["manage.py", *arguments])
    except SystemExit as end:
        return end.code
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        from django.db import connections

        connections.close_all()


if __name__ == "__main__":
    serve()
