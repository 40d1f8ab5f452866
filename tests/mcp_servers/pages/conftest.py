"""The pages, as an administrator sees them."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import Tenant


@pytest.fixture
def page(tenant: Tenant) -> Client:
    """The browser of a workspace's administrator."""
    return tenant.client("admin")
