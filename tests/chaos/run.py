"""A chaos run: people talk, processes die, and in the end everything has to be right.

python -m tests.chaos.run [--turns 200] [--seed N] [--short]

Prints its seed first, so that the same faults can be asked for again; the moments at which they hit are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter

from tests.chaos.installation import START_SECONDS, Installation, Missing, installation
from tests.chaos.people import PATIENCE, Account, Peace, Person
from tests.chaos.trouble import Trouble

SIDE_BY_SIDE = 8
"""Conversations at a time."""
MORE_SECONDS = 900.0
"""Beside the turns and the start of servers: for the first rows, the last harm and the verdict."""


async def live(
    made: Installation, account: Account, *, turns: int, seed: int, lease: float, seconds: float
) -> None:
    """So many turns, some side by side, with trouble all the while.

    Args:
        seconds: after which nobody waits any more.
    """
    left = turns
    peace = Peace()

    async def talk(person: Person) -> None:
        nonlocal left
        try:
            while left > 0:
                left -= 1
                await person.live_through_a_turn()
        except TimeoutError as error:
            account.stuck.append(str(error))
        finally:
            await person.close()

    people = {
        asyncio.create_task(talk(person)): person
        for number in range(SIDE_BY_SIDE)
        for person in [Person(made, account, peace, random.Random(f"{seed} person {number}"))]
    }
    are_done = asyncio.Event()
    dice = random.Random(f"{seed} trouble")
    trouble = Trouble(made, account, peace, dice, lease_seconds=lease)
    troubled = asyncio.create_task(trouble.go_on(are_done))
    _, waiting = await asyncio.wait(people, timeout=seconds)
    for late in waiting:
        account.stuck.append(f"after {seconds:g} s somebody waits for {people[late].waits_for}")
        late.cancel()
    await asyncio.gather(*people, return_exceptions=True)
    are_done.set()
    await troubled
    for one in people.keys() - waiting:
        one.result()


def _left_transactions(made: Installation) -> int:
    """How many are open and do nothing, after those that only waited for a core have had time to end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        left = made.services.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
            " AND now() - state_change > interval '1 second'"
        )[0][0]
        if not left or time.monotonic() > deadline:
            return int(left)
        time.sleep(1)


def judge(made: Installation, account: Account) -> int:
    """Print what came of it; the exit code."""
    effects = [(effect.tool, dict(effect.arguments)) for effect in made.tools.effects]
    output = made.run(
        "tests.chaos.look", text=json.dumps({"accepted": account.accepted, "effects": effects})
    )
    rules: Counter[str] = Counter(rule for rule, _, _ in output["violations"])
    lost = rules.pop("message.lost", 0) + rules.pop("message.twice", 0)
    doubled = rules.pop("effect.doubled", 0)
    stuck = len(account.stuck) + rules.pop("turn.stuck", 0) + rules.pop("turn.unheld", 0)
    log = sum(rules.pop(rule) for rule in list(rules) if rule.startswith("log."))
    log += rules.pop("effect.unrequested", 0)
    idle = _left_transactions(made)
    print(f"faults              {dict(account.faults)}")
    print(f"turns               {output['turns']}")
    print(f"tool calls          {output['calls']}, {len(effects)} effects")
    if account.seconds:
        ordered = sorted(account.seconds)
        print(
            f"seconds a turn      median {ordered[len(ordered) // 2]:.1f}, longest {ordered[-1]:.1f}"
        )
    print(f"lost messages       {lost}")
    print(f"doubled effects     {doubled}")
    print(f"stuck turns         {stuck}")
    print(f"audit mismatches    {log}")
    print(f"other violations    {sum(rules.values())}")
    print(f"odd answers         {len(account.odd)}")
    print(f"left transactions   {idle}")
    for text in (*account.stuck, *account.odd):
        print(f"  {text}")
    for rule, subject, text in output["violations"]:
        print(f"  {rule}  {subject}  {text}")
    bad = lost + doubled + stuck + log + sum(rules.values()) + len(account.odd) + idle
    print("All is right." if not bad else "FAILED")
    return 1 if bad else 0


def main() -> int:
    """Exit code 0 if nothing was lost, doubled, stuck or unrecorded; 1 if something was; 2 if it cannot run here."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    turns = min(options.turns, 16) if options.short else options.turns
    print(f"seed                {seed}", flush=True)
    account, began = Account(), time.monotonic()
    lease = 4.0 if options.short else 15.0
    most = 300.0 + 15.0 * turns
    try:
        with installation(
            lease_seconds=lease if options.short else None,
            most_seconds=most + START_SECONDS + MORE_SECONDS,
        ) as made:
            print(f"installed           {time.monotonic() - began:.0f} s", flush=True)
            started, code = time.monotonic(), 1
            try:
                asyncio.run(live(made, account, turns=turns, seed=seed, lease=lease, seconds=most))
                print(f"time                {time.monotonic() - started:.0f} s", flush=True)
                code = judge(made, account)
            finally:
                if code:
                    print(made.logs())
            return code
    except Missing as missing:
        print(missing)
        return 2


if __name__ == "__main__":
    sys.exit(main())
