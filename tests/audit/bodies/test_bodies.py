"""Arguments and results in the log: masked as wished, kept apart, committed to, and proven by that later."""

from __future__ import annotations

import json
import time

import pytest
from django.db import connection

from audit.actions import Action, Outcome
from audit.bodies import commit_to, is_body_whole, read_body
from audit.bodies.detectors import DETECTORS, is_card_number, is_iban
from audit.bodies.masking import Masking, read_masked_path
from audit.bodies.storing import keep
from audit.models import AuditBody, AuditEntry, AuditPolicy
from audit.policies import forget_policy
from audit.services import EntryDraft, Ref, record
from tests.factories import Tenant
from workspaces.errors import InvalidInput
from workspaces.redaction import MASK, remember_secret
from workspaces.secrets import SecretUnreadable

CARD, IBAN = "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"


def canonical(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def entry_with(tenant: Tenant, **bodies: object) -> AuditEntry:
    return record(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED if "result" in bodies else Action.TOOL_CALL_REQUESTED,
            outcome=Outcome.OK if "result" in bodies else None,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
            server=Ref(id=None, name="crm"),
            tool=Ref(id=None, name="lookup"),
            **{name: canonical(value) for name, value in bodies.items()},  # type: ignore[arg-type]
        )
    )


def settle_policy(tenant: Tenant, **values: object) -> None:
    AuditPolicy.unscoped.update_or_create(workspace=tenant.workspace, defaults=values)
    forget_policy(tenant.workspace.pk)


def body_of(entry: AuditEntry) -> AuditBody:
    return AuditBody.unscoped.get(entry_id=entry.pk)


@pytest.mark.django_db
def test_a_large_result_is_kept_whole_and_its_commitment_proves_it(tenant: Tenant) -> None:
    """SEC-107: 20 MB; size and commitment are those of the whole, the preview is its beginning."""
    settle_policy(tenant, body_bytes=32 * 1024 * 1024)
    value = {"text": "ab" * 10_000_000}
    entry = entry_with(tenant, result=value)
    stored = read_body(entry)
    assert stored is not None
    assert stored.result is not None
    assert not stored.is_cut
    assert commit_to(stored.result.encode()) == entry.result_commitment
    assert entry.result_size == len(canonical(value))
    assert entry.result_preview.startswith('{"text":"abab')
    assert len(entry.result_preview) < 5_000


@pytest.mark.django_db
def test_beyond_the_limit_the_beginning_is_kept_and_that_is_said(tenant: Tenant) -> None:
    """SEC-107: the commitment still covers the whole."""
    settle_policy(tenant, body_bytes=1_000)
    value = {"text": "é" * 5_000}
    entry = entry_with(tenant, result=value)
    stored = read_body(entry)
    assert stored is not None
    assert stored.is_cut
    assert stored.result is not None
    assert 990 < len(stored.result.encode()) <= 1_000
    assert canonical(value).decode().startswith(stored.result)
    assert entry.result_commitment == commit_to(canonical(value))
    settle_policy(tenant, body_bytes=0)
    assert read_body(entry_with(tenant, result=value)) is None


@pytest.mark.django_db
def test_no_half_of_a_secret_comes_into_a_body_that_masking_shortens() -> None:
    """SEC-1031: such as a list of tokens. What is behind the cut comes before the end of what is kept then."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    for before in range(0, len(token), 8):
        raw = json.dumps({"tokens": "." * before + f"{token} " * 4_000, "next": "here"}).encode()
        kept = keep(raw, root="result", masking=Masking(), most_bytes=64 * 1024)
        assert kept.text is not None
        assert kept.is_cut
        assert "ghp" not in kept.text
        assert MASK in kept.text
        assert '"next":"here"' in kept.text


def test_a_body_is_unreadable_in_the_database_and_in_another_entry(tenant: Tenant) -> None:
    """SEC-91: encrypted under a key of its own, which is bound to its place."""
    one = entry_with(tenant, arguments={"note": "quiet-words-of-one"})
    two = entry_with(tenant, arguments={"note": "quiet-words-of-two"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT key, arguments FROM audit_auditbody")
        raw = b"".join(
            bytes(part if isinstance(part, bytes | memoryview) else part.encode())
            for row in cursor
            for part in row
        )
    assert b"quiet-words" not in raw
    stolen = body_of(one).arguments
    AuditBody.unscoped.filter(entry_id=two.pk).update(arguments=stolen)
    with pytest.raises(SecretUnreadable):
        read_body(two)
    assert read_body(one) is not None


@pytest.mark.django_db
@pytest.mark.parametrize("changed", ["preview", "body", "swapped", "gone"])
def test_what_was_altered_later_does_not_fit_its_commitment(tenant: Tenant, changed: str) -> None:
    """SEC-103: previews and bodies are proven by the sealed entry, although they can be erased."""
    entry = entry_with(tenant, arguments={"note": "original"})
    body: AuditBody | None = body_of(entry)
    assert body is not None
    assert is_body_whole(entry, body)
    if changed == "preview":
        entry.arguments_preview = entry.arguments_preview.replace("original", "forged")
    elif changed == "body":
        body.arguments = bytes(body.arguments or b"")[:-1] + b"x"
    elif changed == "swapped":
        body.arguments, body.result = body.result, body.arguments
    else:
        body = None
    assert not is_body_whole(entry, body)


@pytest.mark.django_db
def test_the_workspaces_own_rules_mask_texts_and_numbers_and_say_so(tenant: Tenant) -> None:
    """SEC-94, SEC-107, SEC-1102: by path, by key name, by kind of data; what was masked, and why, stands beside it."""
    settle_policy(
        tenant,
        masked_paths=[
            "$.arguments.customer.ssn",
            "crm/lookup $.arguments..salary",
            "other $.arguments.name",
        ],
        detectors=["email", "card", "iban"],
    )
    entry = entry_with(
        tenant,
        arguments={
            "name": "Ann",
            "password": 123456,
            "customer": {"ssn": 999_12_3456, "mail": "to ann@example.org, please"},
            "rows": [{"salary": 5000}, {"salary": 6000, "iban": IBAN}],
            "card": 4111111111111111,
            "order": 4111111111111112,
            "ann@example.org": {"ben@example.org": 1, CARD: 2},
        },
    )
    stored = read_body(entry)
    assert stored is not None
    kept = json.loads(stored.arguments or "")
    assert kept == {
        "name": "Ann",
        "password": MASK,
        "customer": {"ssn": MASK, "mail": f"to {MASK}, please"},
        "rows": [{"salary": MASK}, {"salary": MASK, "iban": MASK}],
        "card": MASK,
        "order": 4111111111111112,
        MASK: {MASK: 2, f"{MASK} (2)": 1},
    }
    assert json.loads(entry.arguments_preview) == kept
    marks = {(mark["path"], mark["rule"]) for mark in entry.redactions or []}
    assert marks == {
        ("$['arguments']['password']", "key"),
        ("$['arguments']['customer']['ssn']", "path"),
        ("$['arguments']['customer']['mail']", "email"),
        ("$['arguments']['rows'][0]['salary']", "path"),
        ("$['arguments']['rows'][1]['salary']", "path"),
        ("$['arguments']['rows'][1]['iban']", "iban"),
        ("$['arguments']['card']", "card"),
        (f"$['arguments']['{MASK}']", "email"),
        (f"$['arguments']['{MASK}']['{MASK}']", "card"),
        (f"$['arguments']['{MASK}']['{MASK} (2)']", "email"),
    }


@pytest.mark.django_db
def test_a_path_finds_what_stands_under_a_masked_key(tenant: Tenant) -> None:
    """SEC-996: a key that somebody declares a secret hides no value from the workspace's rules."""
    remember_secret("taxNumber", workspace_id=tenant.workspace.pk)
    settle_policy(tenant, masked_paths=["$.arguments.rows[*].taxNumber"])
    entry = entry_with(tenant, arguments={"rows": [{"a": 1, "taxNumber": 4711}]})
    stored = read_body(entry)
    assert stored is not None
    assert json.loads(stored.arguments or "") == {"rows": [{"a": 1, MASK: MASK}]}
    place = f"$['arguments']['rows'][0]['{MASK}']"
    assert entry.redactions == [{"path": place, "rule": rule} for rule in ("known", "path")]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "customer.ssn",
        "$.a[?@.b == 1]",
        "$[",
        "server tool $.a",
        "$.a | $.b",
        "$.a" * 300,
        "$..a..b",
        "$..*",
    ],
)
def test_a_path_that_cannot_be_read_is_refused(line: str) -> None:
    """Ours: a rule that would mask nothing must not look as if it did."""
    with pytest.raises(InvalidInput):
        read_masked_path(line)


def test_masking_twice_marks_once_and_survives_odd_values() -> None:
    """Ours: paths that meet a mask, a missing place, or the root itself."""
    masking = Masking(
        paths=[
            read_masked_path(line)
            for line in ("$", "$.result.a", "$.result.a.b", "$.result[5]", "$..c")
        ]
    )
    masked, marks = masking.apply({"a": {"b": 1}, "x": [{"c": None}, 7, "t"]}, root="result")
    assert masked == {"a": MASK, "x": [{"c": MASK}, 7, "t"]}
    assert [(mark.path, mark.rule) for mark in marks] == [
        ("$['result']['a']", "path"),
        ("$['result']['x'][0]['c']", "path"),
    ]
    assert Masking().apply("plain", root="result") == ("plain", [])


def test_check_digits_decide() -> None:
    """Ours: an order number is no card, a product code no account."""
    assert is_card_number(CARD.replace(" ", ""))
    assert not is_card_number("4111111111111112")
    assert not is_card_number("0" * 16)
    assert is_iban(IBAN.replace(" ", ""))
    assert not is_iban("DE88370400440532013000")


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("piece", ["+1", "1", "1-", "a@b.", "a.", "DE89 ", "A1"])
def test_a_hostile_text_costs_no_more_than_its_length(name: str, piece: str) -> None:
    """SEC-33: four times the text takes about four times as long, not sixteen."""

    def cost(length: int) -> float:
        text = (piece * length)[:length] + "x"
        began = time.process_time()
        DETECTORS[name][1](text)
        return time.process_time() - began

    assert min(cost(200_000) for _ in range(2)) < 12 * (min(cost(50_000) for _ in range(3)) + 0.02)


@pytest.mark.django_db
def test_odd_values_are_stored_as_they_are_sealed(tenant: Tenant) -> None:
    """SEC-106: what one database or reader would change or refuse is made harmless before it is written."""
    entry = record(
        EntryDraft(
            action=Action.CONFIG_CHANGED,
            actor=tenant.actor(),
            workspace_id=tenant.workspace.pk,
            details={
                "big": 2**70,
                "nan": float("nan"),
                "nul": "a\x00b",
                "half": "\ud800",
                "ok": [1.5, None, True],
            },
        )
    )
    stored = AuditEntry.objects.for_workspace(tenant.workspace).get(pk=entry.pk)
    expected = {
        "big": str(2**70),
        "nan": "nan",
        "nul": "a\ufffdb",
        "half": "\ufffd",
        "ok": [1.5, None, True],
    }
    assert stored.details == entry.details == expected
