"""Which addresses may be connected to: one table of our own for IPv4, IPv6 and every way to hide one in the other. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# What is not global unicast although `ipaddress` may say so, from the IANA special-purpose registries, plus addresses
# that clouds give to their metadata and control services.
_REFUSED_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2620:4f:8000::/48",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def is_allowed_address(
    address: Address, *, networks: Iterable[Network] = (), only_networks: bool = False
) -> bool:
    """Whether a connection to this address may be opened.

    Args:
        networks: what the platform's owner allows besides global unicast.
        only_networks: True for plain http, which may not cross the public network.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return False
    inner = _unwrap(address)
    if inner is None:
        return False
    if any(inner.version == network.version and inner in network for network in networks):
        return True
    if only_networks or any(
        inner.version == network.version and inner in network for network in _REFUSED_NETWORKS
    ):
        return False
    return inner.version == 4 or inner in _GLOBAL_IPV6


def _unwrap(address: Address) -> Address | None:
    """The address that packets really go to; None where that cannot be said."""
    if address.version == 4:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None or address in _NAT64_LOCAL:
        return None
    return address
