"""A chat whose model has a price."""

from __future__ import annotations

import pytest

from chat.models import (
    ProviderModel,
)
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
