"""What the history checker, and the proof of the log, say of a whole installation: JSON in (accepted, effects), JSON out.

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

    from audit.sealing.sealing_thread import seal_all
    from audit.verification.online import verify
    from tests.chaos.history_check import Effect, find_violations
    from tests.chaos.history_reader import read_history
    from workspaces.actors import Actor, Source

    order = json.load(sys.stdin)
    history = read_history()
    found = find_violations(
        history,
        accepted=[(UUID(conversation), client_id) for conversation, client_id in order["accepted"]],
        effects=[Effect(tool, arguments) for tool, arguments in order["effects"]],
    )
    seal_all()
    actor = Actor.system(label="chaos", source=Source.COMMAND, workspace_id=None)
    proof = verify(actor=actor)
    unproven = [(f"log.{one.result}", f"{one.chain} {one.seq}", one.text) for one in proof.findings]
    print(
        json.dumps(
            {
                "violations": [*((one.rule, one.subject, one.text) for one in found), *unproven],
                "turns": Counter(turn.status for turn in history.turns),
                "calls": Counter(call.status for call in history.calls),
            }
        )
    )


if __name__ == "__main__":
    main()
