"""The provider's API in its two forms, behind one interface. The calls that give credentials away are not here.

Creating is documented as idempotent: the same person's instance of the same service is given again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

import pydantic

from mcp_servers.klavis import shapes
from mcp_servers.klavis.errors import (
    KlavisAnswerUnreadable,
    KlavisError,
    NotAccepted,
    NotOffered,
    NotThere,
)
from mcp_servers.klavis.http import KlavisHttp

PLATFORM: Final = "trellis"
TRANSPORT: Final = "StreamableHttp"

S = TypeVar("S", bound=pydantic.BaseModel)


class KlavisApi(Protocol):
    """What we ask of the provider. Everything raises KlavisError."""

    async def catalogue(self) -> list[shapes.KlavisServer]:
        """All services on offer."""
        ...

    async def create_instance(
        self, *, server_name: str, user_id: str, is_read_only: bool
    ) -> shapes.CreatedInstance:
        """Make an instance, or be given the one that is there."""
        ...

    async def get_instance(self, instance_id: str) -> shapes.Instance:
        """How an instance is. NotThere: it is gone."""
        ...

    async def set_read_only(self, instance_id: str, *, is_read_only: bool) -> None:
        """Have it offer only what reads, or all."""
        ...

    async def delete_instance(self, instance_id: str) -> None:
        """Delete it."""
        ...

    async def set_credential(self, instance_id: str, credential: Mapping[str, str]) -> None:
        """Give it {"token": …} or {"api_key": …}."""
        ...

    async def delete_credential(self, instance_id: str) -> None:
        """Sign it out."""
        ...

    async def delete_user(self, user_id: str) -> None:
        """Delete all that it keeps of a person."""
        ...

    async def create_strata(self, *, user_id: str, servers: Sequence[str]) -> shapes.Strata:
        """Put several services behind one server."""
        ...

    async def get_strata(self, strata_id: str) -> shapes.Strata:
        """How it is."""
        ...

    async def add_to_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        """Add services."""
        ...

    async def remove_from_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        """Take services away."""
        ...


class _Common:
    """What both forms share."""

    def __init__(self, http: KlavisHttp) -> None:
        self._http = http

    async def catalogue(self) -> list[shapes.KlavisServer]:
        found = _read(shapes.Catalogue, await self._http.ask("GET", "/mcp-server/servers"))
        return _readable(shapes.KlavisServer, found.servers)

    async def create_instance(
        self, *, server_name: str, user_id: str, is_read_only: bool
    ) -> shapes.CreatedInstance:
        body = self._creation(server_name, user_id, is_read_only)
        answer = await self._http.ask(
            "POST", "/mcp-server/instance/create", body=body, is_repeatable=True
        )
        return _read(shapes.CreatedInstance, answer)

    def _creation(self, server_name: str, user_id: str, is_read_only: bool) -> dict[str, Any]:
        return {
            "serverName": server_name,
            "userId": user_id,
            "platformName": PLATFORM,
            "connectionType": TRANSPORT,
            "isReadOnly": is_read_only or None,
        }

    async def set_credential(self, instance_id: str, credential: Mapping[str, str]) -> None:
        body = {"instanceId": instance_id, "authData": dict(credential)}
        _check_done(await self._http.ask("POST", "/mcp-server/instance/set-auth", body=body))


class CurrentApi(_Common):
    """From 2.8 on: paths by resource, several services behind one server."""

    async def get_instance(self, instance_id: str) -> shapes.Instance:
        return _read(shapes.Instance, await self._http.ask("GET", _instance(instance_id)))

    async def set_read_only(self, instance_id: str, *, is_read_only: bool) -> None:
        # Said twice it is the same.
        await self._http.ask(
            "PATCH", _instance(instance_id), body={"isReadOnly": is_read_only}, is_repeatable=True
        )

    async def delete_instance(self, instance_id: str) -> None:
        _check_done(await self._http.ask("DELETE", _instance(instance_id)))

    async def delete_credential(self, instance_id: str) -> None:
        _check_done(await self._http.ask("DELETE", f"{_instance(instance_id)}/auth"))

    async def delete_user(self, user_id: str) -> None:
        _check_done(await self._http.ask("DELETE", f"/user/{_part(user_id)}"))

    async def create_strata(self, *, user_id: str, servers: Sequence[str]) -> shapes.Strata:
        body = {"userId": user_id, "servers": list(servers), "enableAuthHandling": True}
        return _with_id(await self._http.ask("POST", "/mcp-server/strata/create", body=body))

    async def get_strata(self, strata_id: str) -> shapes.Strata:
        answer = await self._http.ask("GET", f"/mcp-server/strata/{_part(strata_id)}")
        return _read(shapes.Strata, answer)

    async def add_to_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        body = {"strataId": strata_id, "servers": list(servers)}
        await self._http.ask("POST", "/mcp-server/strata/add", body=body, is_repeatable=True)

    async def remove_from_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        await self._http.ask(
            "DELETE",
            f"/mcp-server/strata/{_part(strata_id)}/servers",
            query={"servers": ",".join(servers)},
        )


class OlderApi(_Common):
    """Up to 2.7: paths by verb, a list of a person's instances, nothing that only reads and no Strata."""

    def _creation(self, server_name: str, user_id: str, is_read_only: bool) -> dict[str, Any]:
        if is_read_only:
            raise NotOffered
        return {"serverName": server_name, "userId": user_id, "platformName": PLATFORM}

    async def get_instance(self, instance_id: str) -> shapes.Instance:
        answer = await self._http.ask("GET", f"/mcp-server/instance/get/{_part(instance_id)}")
        return _read(shapes.Instance, answer)

    async def set_read_only(self, instance_id: str, *, is_read_only: bool) -> None:
        raise NotOffered

    async def delete_instance(self, instance_id: str) -> None:
        path = f"/mcp-server/instance/delete/{_part(instance_id)}"
        _check_done(await self._http.ask("DELETE", path))

    async def delete_credential(self, instance_id: str) -> None:
        path = f"/mcp-server/instance/delete-auth/{_part(instance_id)}"
        _check_done(await self._http.ask("DELETE", path))

    async def delete_user(self, user_id: str) -> None:
        _check_done(await self._http.ask("DELETE", f"/user/delete/{_part(user_id)}"))

    async def create_strata(self, *, user_id: str, servers: Sequence[str]) -> shapes.Strata:
        raise NotOffered

    async def get_strata(self, strata_id: str) -> shapes.Strata:
        raise NotOffered

    async def add_to_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        raise NotOffered

    async def remove_from_strata(self, strata_id: str, servers: Sequence[str]) -> None:
        raise NotOffered


CURRENT: Final = "current"
OLDER: Final = "older"


def api_for(http: KlavisHttp, dialect: str) -> KlavisApi:
    """The form of that name."""
    return OlderApi(http) if dialect == OLDER else CurrentApi(http)


async def find_dialect(http: KlavisHttp) -> str:
    """Which form is spoken there: only the older one lists the instances of a person.

    Raises:
        KlavisError: nothing can be said, for the key is refused or nobody answers.
    """
    try:
        answer = await http.ask(
            "GET", "/user/instances", query={"user_id": PLATFORM, "platform_name": PLATFORM}
        )
    except (NotThere, NotAccepted):
        return CURRENT
    has_list = isinstance(answer, dict) and isinstance(answer.get("instances"), list)
    return OLDER if has_list else CURRENT


def _part(text: str) -> str:
    """One part of a path."""
    return quote(text, safe="")


def _instance(instance_id: str) -> str:
    return f"/mcp-server/instance/{_part(instance_id)}"


def _read(shape: type[S], answer: object) -> S:
    try:
        return shape.model_validate(answer)
    except pydantic.ValidationError:
        raise KlavisAnswerUnreadable from None


def _readable(shape: type[S], items: Sequence[object]) -> list[S]:
    """Those that can be read: one broken entry hides no other."""
    found = []
    for item in items[: shapes.MAX_LISTED]:
        try:
            found.append(shape.model_validate(item))
        except pydantic.ValidationError:
            continue
    return found


def _with_id(answer: object) -> shapes.Strata:
    found = _read(shapes.Strata, answer)
    if not found.strata_id:
        raise KlavisAnswerUnreadable
    return found


def _check_done(answer: object) -> None:
    if not _read(shapes.KlavisResult, answer).success:
        raise KlavisError
