"""What other apps add to the pages on servers and to the REST interface: each registers itself when it is ready."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from django.urls import include, path

if TYPE_CHECKING:
    from django.urls import URLResolver
    from rest_framework.viewsets import ViewSetMixin

_registered: list[tuple[str, str]] = []


def register(*, urls: str, api: str) -> None:
    """Add an app's pages and its part of the REST interface. Called once at start.

    Args:
        urls: a module with `urlpatterns`.
        api: a module with `routes`: prefixes and viewsets.
    """
    _registered.append((urls, api))


def url_patterns() -> list[URLResolver]:
    """The pages of all these apps, among those on servers."""
    return [path("", include(urls)) for urls, _ in _registered]


def api_routes() -> Iterator[tuple[str, type[ViewSetMixin]]]:
    """What all these apps have in the REST interface."""
    for _, api in _registered:
        yield from import_module(api).routes
