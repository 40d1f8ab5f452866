"""Policy, as a table."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from audit.reports.providers import rule_in_words
from config.bootstrap import ROOT
from mcp_servers.client.values import Effect, ToolAnnotations, ToolFacts
from mcp_servers.registry.consent.policy import SENTENCES, decide, relax

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
    assert decision.rule in SENTENCES
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


def test_a_persons_always_answers_only_questions_asked_as_a_matter_of_course() -> None:
    """SEC-62: an administrator's "ask first" and "blocked" are not relaxed by a person's "always"."""
    writes = ToolFacts(
        trusts_annotations=True, annotations=ToolAnnotations(read_only=False, destructive=False)
    )
    assert relax(decide(writes), writes, is_remembered=True).rule == "user.always"
    assert relax(decide(writes), writes, is_remembered=False).effect is Effect.CONFIRM
    for override in (Effect.CONFIRM, Effect.DENY):
        facts = replace(writes, override=override)
        assert relax(decide(facts), facts, is_remembered=True).effect is override


@pytest.mark.parametrize("override", [Effect.AUTO, None])
def test_after_untrusted_content_what_could_send_out_asks(override: Effect | None) -> None:
    """SEC-70: read a web page, then send_mail → waits, even if set to auto or always allowed.

    REL-1725: who always allows it is told why they are asked all the same.
    """
    send_mail = ToolFacts(
        trusts_annotations=True,
        annotations=ToolAnnotations(read_only=False, open_world=True),
        override=override,
        has_read_untrusted=True,
    )
    decision = relax(decide(send_mail), send_mail, is_remembered=True)
    assert (decision.effect, decision.rule) == (Effect.CONFIRM, "turn.untrusted_content")
    is_kept = decision.reason.startswith("You chose to always allow this tool, but")
    assert is_kept is (override is None)
    at_home = replace(send_mail, annotations=ToolAnnotations(read_only=False, open_world=False))
    assert relax(decide(at_home), at_home, is_remembered=True).effect is Effect.AUTO
    unproven = replace(at_home, trusts_annotations=False)
    assert relax(decide(unproven), unproven, is_remembered=True).effect is Effect.CONFIRM
    unspoilt = replace(send_mail, has_read_untrusted=False)
    assert relax(decide(unspoilt), unspoilt, is_remembered=True).effect is Effect.AUTO


_RULE = re.compile(
    r'"((?:actor|approval|arguments|audit|builtin|checkpoint|prompt|resource|server|tester|tool|hints|action|user)\.[a-z_]+)"'
)


def test_every_rule_that_stops_or_allows_a_call_has_a_sentence() -> None:
    """REL-526: whoever reads the log is told in words, whichever rule it was."""
    folders = [ROOT / "mcp_servers" / part for part in ("gate", "registry/consent")]
    texts = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    rules = {rule for text in texts for rule in _RULE.findall(text)}
    assert len(rules) > 40
    assert {rule for rule in rules if not rule_in_words(rule)} == set()
