"""The log in the admin."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from audit.actions import Action, Outcome, RefusedBy
from audit.services import EntryDraft, record
from tests.factories import Tenant, make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    """A workspace with a person in each role."""
    return make_tenant("acme")


def test_entries_and_their_filters_are_in_words(tenant: Tenant) -> None:
    """REL-818: no list of the admin shows the codes that the log keeps."""
    for values in ({"outcome": Outcome.OK}, {"refused_by": RefusedBy.POLICY}):
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=tenant.actor("member"),
                workspace_id=tenant.workspace.pk,
                **values,
            )
        )
    # With how many entries each choice has.
    page = tenant.client("admin").get(reverse("admin:audit_auditentry_changelist") + "?_facets=")
    shown = re.sub(r"<[^>]*>", " ", page.content.decode())
    for words in (
        "Tool call finished (2)",
        "Succeeded (1)",
        "Refused",
        "Timed out",
        "Background job",
    ):
        assert words in shown
    for code in ("tool_call.finished", "tool_error", "export.created"):
        assert code not in shown
