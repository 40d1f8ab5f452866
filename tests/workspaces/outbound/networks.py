"""Networks that an owner may open."""

from __future__ import annotations

import ipaddress

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
