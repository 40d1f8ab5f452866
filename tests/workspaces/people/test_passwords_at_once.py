"""A person who changes their password while the platform's owner changes their account."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher

from tests.factories import PASSWORD, Tenant, UserFactory, signed_in
from workspaces.models import User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def test_whoever_is_switched_off_while_they_change_their_password_stays_out(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-701: working out a password takes a second, in which the account may be switched off or lose its rights."""
    person = UserFactory.create(email="leaving@example.org", is_superuser=True)
    client = signed_in(person)
    encode = MD5PasswordHasher.encode

    def switch_off_meanwhile(self: Any, *given: Any, **named: Any) -> str:
        User.objects.filter(pk=person.pk).update(is_active=False, is_superuser=False, name="Gone")
        return encode(self, *given, **named)

    new = "another good password 9"
    with monkeypatch.context() as patch:
        patch.setattr(MD5PasswordHasher, "encode", switch_off_meanwhile)
        client.post(
            "/accounts/password/change/",
            {"oldpassword": PASSWORD, "password1": new, "password2": new},
        )
    person.refresh_from_db()
    assert (person.is_active, person.is_superuser, person.name) == (False, False, "Gone")
    assert person.check_password(new)
