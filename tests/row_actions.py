"""Choosing rows of a list in the admin and what to do with them."""

from __future__ import annotations

from typing import Any

from django.test import Client


def act(
    client: Client, url: str, action: str, *rows: Any, confirmed: bool = True, **more: Any
) -> Any:
    """Choose rows and an action; where a page asks, say yes at once. Gives the page that follows.

    Args:
        rows: rows, or ids.
        confirmed: False: only choose, as people do in the list.
        more: what else is sent.
    """
    body = {"action": action, "_selected_action": [str(getattr(row, "pk", row)) for row in rows]}
    answer = {"confirmed": "yes"} if confirmed else {"index": "0"}
    return client.post(url, {**body, **answer, **more}, follow=True)


def notices(page: Any) -> list[str]:
    """What the page says came of it."""
    return [str(message) for message in page.context["messages"]]
