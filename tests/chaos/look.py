"""What the history checker says of a whole installation: JSON in (accepted, effects), JSON out.

python -m tests.chaos.look < told.json
"""

from __future__ import annotations

import json
import os
import sys
from uuid import UUID

import django


def main() -> None:
    """Print the violations, and how many turns ended how."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from collections import Counter

    from chat.history_check import Effect, find_violations
    from chat.history_reader import read_history

    told = json.load(sys.stdin)
    history = read_history()
    found = find_violations(
        history,
        accepted=[(UUID(conversation), client_id) for conversation, client_id in told["accepted"]],
        effects=[Effect(tool, arguments) for tool, arguments in told["effects"]],
    )
    print(
        json.dumps(
            {
                "violations": [(one.rule, one.subject, one.text) for one in found],
                "turns": Counter(turn.status for turn in history.turns),
                "calls": Counter(call.status for call in history.calls),
            }
        )
    )


if __name__ == "__main__":
    main()
