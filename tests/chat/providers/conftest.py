"""A chat whose model has a price, and providers that have not failed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chat.models import Bud, ProviderModel, SharedProvider
from chat.providers import standing_in
from tests.chat.conftest import Chat
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.sharing import KEY, row_of, share
from workspaces.actors import Actor
from workspaces.models import User


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


@pytest.fixture
def owner(superuser: User) -> Actor:
    """The platform's owner, who is in no workspace."""
    return owns(superuser)


@pytest.fixture
def shared(chat: Chat, owner: Actor) -> SharedProvider:
    """The chat's bud is served by what is shared with its workspace, and takes the shared key alone."""
    row = share(owner, chat.tenant, base_url=chat.model.base_url)
    chat.model.keys = {KEY}
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=row_of(chat.tenant))
    chat.bud.refresh_from_db()
    return row
