"""What tests of people share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.authorization import Issuer
from tests.workspaces.people.single_sign_on import (
    BACK,
    SECRET,
    configured,
)


@pytest.fixture
def provider(issuer: Issuer) -> Iterator[Issuer]:
    """A provider that says of each account at its page that the address is confirmed, and Trellis that knows it."""
    issuer.serves = {"openid"}
    issuer.id_tokens = True
    issuer.accounts.claims = {"email_verified": True, "name": "Ada Lovelace"}
    issuer.add_client("trellis", SECRET, BACK)
    with configured(issuer):
        yield issuer
