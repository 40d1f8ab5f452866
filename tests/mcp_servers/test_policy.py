"""Policy, as a table."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_servers.policy import ToolFacts, decide
from mcp_servers.values import Effect, ToolAnnotations

READS = ToolAnnotations(read_only=True)
DESTROYS = ToolAnnotations(read_only=False, destructive=True)
WRITES = ToolAnnotations(read_only=False, destructive=False)
CONTRADICTS = ToolAnnotations(read_only=True, destructive=True)
NOTHING = ToolAnnotations()


@pytest.mark.parametrize(
    ("facts", "effect", "rule"),
    [
        ({"annotations": READS, "trusts_annotations": True}, Effect.AUTO, "hints.read_only"),
        ({"annotations": READS}, Effect.CONFIRM, "hints.untrusted"),
        (
            {"annotations": DESTROYS, "trusts_annotations": True},
            Effect.CONFIRM,
            "hints.destructive",
        ),
        ({"annotations": WRITES, "trusts_annotations": True}, Effect.CONFIRM, "hints.writes"),
        ({"annotations": NOTHING, "trusts_annotations": True}, Effect.CONFIRM, "hints.absent"),
        (
            {"annotations": CONTRADICTS, "trusts_annotations": True},
            Effect.CONFIRM,
            "hints.contradict",
        ),
        ({"annotations": DESTROYS, "override": Effect.AUTO}, Effect.AUTO, "tool.auto"),
        (
            {"annotations": READS, "trusts_annotations": True, "override": Effect.CONFIRM},
            Effect.CONFIRM,
            "tool.confirm",
        ),
        (
            {"annotations": READS, "trusts_annotations": True, "override": Effect.DENY},
            Effect.DENY,
            "tool.deny",
        ),
        ({"is_server_active": False, "override": Effect.AUTO}, Effect.DENY, "server.inactive"),
        ({"is_removed": True, "override": Effect.AUTO}, Effect.DENY, "tool.removed"),
        ({"problem": "odd", "override": Effect.AUTO}, Effect.DENY, "tool.unsound"),
        ({"is_enabled": False, "override": Effect.AUTO}, Effect.DENY, "tool.disabled"),
        ({"is_quarantined": True, "override": Effect.AUTO}, Effect.DENY, "tool.quarantined"),
    ],
)
def test_the_rule_that_decides(facts: dict[str, Any], effect: Effect, rule: str) -> None:
    """SEC-59 and design, 8: each rule decides where it should."""
    decision = decide(ToolFacts(**facts))
    assert (decision.effect, decision.rule) == (effect, rule)
    assert decision.reason.endswith(".") or facts.get("problem")


def test_hints_of_an_untrusted_server_never_relax() -> None:
    """SEC-59: whatever it says, without an administrator's word nothing runs by itself."""
    for values in product((True, False, None), repeat=4):
        hints = ToolAnnotations(
            read_only=values[0], destructive=values[1], idempotent=values[2], open_world=values[3]
        )
        assert decide(ToolFacts(annotations=hints)).effect is Effect.CONFIRM


def test_a_hint_that_is_no_boolean_counts_as_absent() -> None:
    """SEC-59: only true and false are hints."""
    hints = ToolAnnotations.from_wire(
        {"readOnlyHint": "true", "destructiveHint": 0, "idempotentHint": None}
    )
    assert hints == ToolAnnotations()
    assert ToolAnnotations.from_wire("read only") == ToolAnnotations()


def test_deny_wins_over_everything() -> None:
    """Design, 8: an override of deny cannot be relaxed by any hint or trust."""
    for trusts, hints in product((True, False), (READS, DESTROYS, NOTHING)):
        facts = ToolFacts(trusts_annotations=trusts, annotations=hints, override=Effect.DENY)
        assert decide(facts).effect is Effect.DENY
