"""Whether whoever asked still may, while what they asked for is done. Each request asks that only once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import DatabaseError, InterfaceError

from mcp_servers.models import McpServer
from mcp_servers.registry.rights import may_manage
from workspaces.database import in_database
from workspaces.errors import PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, User
from workspaces.people.entering import enterable_workspaces
from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.actors import Actor

T = TypeVar("T")
logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 3.0
"""How often it is asked again."""


class AccessEnded(PermissionDenied):
    """Whoever asked may not have the answer any more."""

    code = "access_ended"
    default_message = _(
        "Your access to this workspace ended while Trellis worked on this request, so it was stopped."
    )


@contextlib.asynccontextmanager
async def ends_with_access(has_access: Callable[[], bool]) -> AsyncIterator[None]:
    """Do something for somebody, and stop it once their access ends.

    Args:
        has_access: asks the database.

    Raises:
        AccessEnded: it has ended.
    """
    try:
        async with asyncio.timeout(None) as limit:
            watching = asyncio.ensure_future(_watch(has_access, limit))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if limit.expired():
            raise AccessEnded from None
        raise


async def for_manager(work: Callable[[], Awaitable[T]], actor: Actor, server_id: UUID) -> T:
    """Do something for whoever manages a server, and stop it once they do so no more.

    Raises:
        AccessEnded: that is so.
    """
    async with ends_with_access(partial(_still_manages, actor, server_id)):
        return await work()


async def for_member(work: Callable[[], Awaitable[T]], actor: Actor) -> T:
    """Do something for whoever uses a workspace, and stop it once they may not enter it any more.

    Raises:
        AccessEnded: that is so.
    """
    async with ends_with_access(partial(_may_enter, actor)):
        return await work()


async def _watch(has_access: Callable[[], bool], limit: asyncio.Timeout) -> None:
    may_go_on = True
    while may_go_on:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            may_go_on = await in_database(has_access)
        except (DatabaseError, InterfaceError):
            pass  # nobody can tell now
        except Exception:
            logger.exception("access_not_known")
    limit.reschedule(asyncio.get_running_loop().time())


def as_of_now(actor: Actor) -> Actor:
    """The same person with their rights of now.

    Raises:
        AccessEnded: they may not enter the workspace any more as they did.
    """
    today = _as_of_now(actor)
    if today is None:
        raise AccessEnded
    return today


def _may_enter(actor: Actor) -> bool:
    return _as_of_now(actor) is not None


def _still_manages(actor: Actor, server_id: UUID) -> bool:
    today = _as_of_now(actor)
    if today is None:
        return False
    assert actor.workspace_id is not None
    server = McpServer.objects.for_workspace(actor.workspace_id).filter(pk=server_id).first()
    # One that was deleted meanwhile ends its calls itself.
    return server is None or may_manage(today, server)


def _as_of_now(actor: Actor) -> Actor | None:
    """The same person with their rights of now, if they may still enter the workspace as they did."""
    assert actor.user_id is not None
    assert actor.workspace_id is not None
    user = User.objects.filter(pk=actor.user_id, is_active=True).first()
    if user is None:
        return None
    workspace = enterable_workspaces(user).filter(pk=actor.workspace_id).first()
    if workspace is None:
        return None
    token = None
    if actor.token_id is not None:
        living = ApiToken.objects.for_workspace(workspace).living()
        if (token := living.filter(pk=actor.token_id).first()) is None:
            return None
    return actor_for(user, workspace, source=actor.source, token=token)
