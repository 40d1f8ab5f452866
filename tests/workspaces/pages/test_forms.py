"""Forms of the account pages."""

from __future__ import annotations

import pytest

from tests.factories import Tenant

pytestmark = pytest.mark.django_db


def test_a_password_is_asked_for_as_everything_else_is(tenant: Tenant) -> None:
    """Ours: names in sentence case, each once, and one way for those who forgot it."""
    page = tenant.client("member").get("/accounts/password/change/")
    form = page.context["form"]
    names = ["Current password", "New password", "New password (again)"]
    assert [str(field.label) for field in form] == names
    text = page.content.decode()
    assert "placeholder" not in text.split('name="oldpassword"')[1]
    assert text.count("/accounts/password/reset/") == 1
