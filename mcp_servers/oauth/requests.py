"""Requests to issuers and to metadata: through the one egress client, to secure addresses, small and short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import httpx2

from mcp_servers.oauth.reasons import Reason, SignInFailed
from workspaces import outbound
from workspaces.errors import InvalidEndpoint

BOUNDS: Final = outbound.Bounds(
    connect_seconds=8.0, idle_seconds=10.0, total_seconds=15.0, body_bytes=512 * 1024
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerResponse:
    """An issuer's answer, read whole."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"IssuerResponse(status={self.status})"


def check_url(text: str) -> outbound.Endpoint:
    """An address that may take part in a sign-in: https, or this machine where the owner opened it.

    Raises:
        SignInFailed: insecure_url.
    """
    try:
        endpoint = outbound.parse_endpoint(text)
    except InvalidEndpoint as error:
        raise SignInFailed(Reason.INSECURE_URL) from error
    if endpoint.scheme != "https" and not _is_open_loopback(endpoint.host):
        raise SignInFailed(Reason.INSECURE_URL)
    return endpoint


def _is_open_loopback(host: str) -> bool:
    """Whether a host is this machine, and the platform's owner lets requests go there."""
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    return address.is_loopback and any(
        address.version == network.version and address in network
        for network in outbound.allowed_networks()
    )


async def get_json(url: str) -> IssuerResponse:
    """Fetch a document.

    Raises:
        SignInFailed: insecure_url, unreachable.
    """
    return await _send("GET", url, headers={"accept": "application/json"})


async def post_form(
    url: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> IssuerResponse:
    """Send a form to an issuer; raises as get_json()."""
    return await _send("POST", url, headers={"accept": "application/json", **headers}, form=form)


async def post_json(url: str, body: Mapping[str, object]) -> IssuerResponse:
    """Send JSON to an issuer; raises as get_json()."""
    return await _send("POST", url, headers={"accept": "application/json"}, body=body)


async def _send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    form: Mapping[str, str] | None = None,
    body: Mapping[str, object] | None = None,
) -> IssuerResponse:
    endpoint = check_url(url)
    try:
        async with outbound.client(bounds=BOUNDS) as client:
            response = await client.request(
                method,
                str(endpoint),
                headers=dict(headers),
                data=dict(form) if form is not None else None,
                json=body,
            )
            return IssuerResponse(status=response.status_code, body=response.content)
    except httpx2.HTTPError as error:
        # The library's texts may hold the address with what was sent; the kind is enough.
        raise SignInFailed(Reason.UNREACHABLE) from error
