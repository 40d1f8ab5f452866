"""Lists that come page by page, read to their end."""

from __future__ import annotations

from typing import Any

from django.test import Client


def rows_of_all_pages(client: Client, path: str, rows: str, ways: str) -> list[Any]:
    """All rows of a list, from its first page to its last."""
    found: list[Any] = []
    url = path
    for _ in range(20):
        context = client.get(url).context
        found += context[rows]
        if not context[ways].following:
            return found
        following = context[ways].following
        url = following if following.startswith("/") else f"{path}{following}"
    raise AssertionError("the list does not end")
