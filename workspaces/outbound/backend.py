"""The network under the egress client: names are resolved once, and only checked addresses are connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Iterable
from typing import Any

import anyio
import httpcore2

from workspaces.outbound.addresses import Address, Network, is_allowed_address
from workspaces.outbound.names import lookups
from workspaces.outbound.streams import LoopStream


class AddressRefused(httpcore2.ConnectError):
    """A host has addresses, and none of them may be connected to."""


class NameNotFound(httpcore2.ConnectError):
    """Nobody knows a host of this name, or nobody could be asked."""


class NobodyListens(httpcore2.ConnectError):
    """The machine is there, and refuses connections to this port."""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name once and connects to an address that passed the table."""

    def __init__(self, *, networks: tuple[Network, ...], only_networks: bool = False) -> None:
        self._networks = networks
        self._only_networks = only_networks

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        deadline = None if timeout is None else time.monotonic() + timeout
        found = await self.resolve(host, port, timeout)
        addresses = [
            address
            for address in found
            if is_allowed_address(
                address, networks=self._networks, only_networks=self._only_networks
            )
        ]
        if found and not addresses:
            raise AddressRefused("Trellis could not reach the server.")
        failure: Exception = httpcore2.ConnectError("Trellis could not reach the server.")
        for address in addresses[:4]:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            try:
                return await LoopStream.connect(
                    str(address), port, left, local_address, socket_options
                )
            except httpcore2.ConnectTimeout as error:
                failure = error
            except httpcore2.ConnectError as error:
                is_refused = isinstance(error.__cause__, ConnectionRefusedError)
                kind = NobodyListens if is_refused else httpcore2.ConnectError
                failure = kind("Trellis could not reach the server.")
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("Trellis could not reach the server.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @staticmethod
    async def resolve(host: str, port: int, timeout: float | None) -> list[Address]:
        """The addresses of a name, or the address that it is; not checked yet."""
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        try:
            with anyio.fail_after(timeout):
                answers = await lookups.addresses_of(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(
                "The server's name could not be looked up in time."
            ) from error
        except (OSError, UnicodeError) as error:
            raise NameNotFound("Trellis could not reach the server.") from error
        return [
            ipaddress.ip_address(text)
            for text in dict.fromkeys(str(answer[4][0]) for answer in answers)
        ]
