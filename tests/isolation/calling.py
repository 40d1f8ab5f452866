"""One call of a route, as the page or the API client would make it."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client


def call(client: Client, method: str, url: str, body: Any, name: str) -> Any:
    """Call as the page or the API client would."""
    if name.startswith("api:"):
        return client.generic(method, url, _json(body), content_type="application/json")
    if method == "POST":
        return client.post(url, _form(body))
    return client.generic(method, url)


def _json(body: Any) -> str:
    return json.dumps(body or {})


def _form(body: Any) -> dict[str, Any]:
    return {key: value for key, value in (body or {}).items() if isinstance(value, str | list)}
