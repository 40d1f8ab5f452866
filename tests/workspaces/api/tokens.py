"""Tokens of people, and requests with them."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from tests.factories import Tenant
from workspaces.people.tokens import issue_token


def token_of(tenant: Tenant, *scopes: str, role: str = "member") -> str:
    _, plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.people[role],
        name="script",
        scopes=scopes,
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor(role),
    )
    return plain


def bearer(plain: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {plain}"}
