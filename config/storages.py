"""Storages of files that whoever runs the platform names, as Django's settings take them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

S3: Final = "storages.backends.s3"
_LIMITS: Final = {
    "connect_timeout": 5,
    "read_timeout": 15,
    "retries": {"mode": "standard", "total_max_attempts": 3},
}
"""Seconds. Else boto waits a minute, five times, for a host that is silently dead; and so do people."""


def named_storage(backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of one storage. A bucket's client waits no longer than its limits."""
    if not backend.startswith(S3) or find_spec("botocore") is None:  # without it, the class says so
        return {"BACKEND": backend, "OPTIONS": dict(options)}
    from botocore.config import Config  # comes with django-storages[s3] alone

    config = Config(**client_values(options))
    return {"BACKEND": backend, "OPTIONS": {**options, "client_config": config}}


def client_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """What configures the client of a bucket: limits, and over them what was chosen in `client_config`.

    Beside a configuration django-storages does not look at the other options of a client.
    """
    others = {
        "proxies": options.get("proxies"),
        "s3": {"addressing_style": options.get("addressing_style")},
        "signature_version": options.get("signature_version"),
    }
    return {**_LIMITS, **others, **options.get("client_config", {})}
