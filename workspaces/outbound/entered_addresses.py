"""Addresses that people enter: what could never be connected to is refused at once, with the reason."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

from django.utils.translation import gettext as _

from workspaces.errors import InvalidEndpoint
from workspaces.outbound.addresses import is_allowed_address
from workspaces.outbound.egress import allowed_networks
from workspaces.outbound.endpoints import HTTP_SCHEMES, Endpoint, parse_endpoint

_SECURE: Final = {"http": "https", "ws": "wss"}


def enter_endpoint(text: str, *, schemes: Collection[str] = HTTP_SCHEMES) -> Endpoint:
    """Read a URL that somebody enters, and refuse http:// and ws:// to hosts outside the allowed networks.

    A name may belong to an allowed network, so it is refused only where nothing but this machine is allowed. What a name
    stands for is checked at each connection.

    Raises:
        InvalidEndpoint: as parse_endpoint(); or the address is not encrypted and leads outside.
    """
    endpoint = parse_endpoint(text, schemes=schemes)
    secure = _SECURE.get(endpoint.scheme)
    if secure is not None and not _may_be_inside(endpoint.host):
        raise InvalidEndpoint(
            _(
                "%(scheme)s:// is not encrypted, so it works only within networks that the platform's owner allows (TRELLIS_ALLOWED_NETWORKS). Use %(secure)s:// for this host."
            )
            % {"scheme": endpoint.scheme, "secure": secure}
        )
    return endpoint


def _may_be_inside(host: str) -> bool:
    networks = allowed_networks()
    try:
        return is_allowed_address(ip_address(host), networks=networks, only_networks=True)
    except ValueError:
        pass
    if host == "localhost" or host.endswith(".localhost"):
        return any(network.is_loopback for network in networks)
    return any(not network.is_loopback for network in networks)
