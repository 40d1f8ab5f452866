"""A chat whose model has a price, and providers that have not failed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chat.models import ProviderModel
from chat.providers import standing_in
from tests.chat.conftest import Chat


@pytest.fixture
def priced(chat: Chat) -> Chat:
    """The chat's model costs one dollar for a million tokens."""
    ProviderModel.objects.create(
        workspace=chat.tenant.workspace,
        provider=chat.bud.provider,
        model="m",
        prompt_price=1,
        completion_price=1,
    )
    return chat


@pytest.fixture(autouse=True)
def nobody_rests() -> Iterator[None]:
    """What one test's providers did is nothing to the next one."""
    standing_in._failures.clear()
    yield
    standing_in._failures.clear()
