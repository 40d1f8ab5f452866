"""A workspace whose people bring chats along and take copies away."""

from __future__ import annotations

import pytest

from tests.factories import Tenant, make_tenant


@pytest.fixture
def acme(db: None) -> Tenant:
    return make_tenant("acme")
