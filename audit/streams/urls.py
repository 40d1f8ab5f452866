"""Routes of streams: each for a workspace and for the platform."""

from __future__ import annotations

from django.urls import URLPattern, path

from audit.streams import views

_WORKSPACE = "w/<slug:workspace_slug>/audit/streams/"
_PLATFORM = "platform/audit/streams/"


def _routes(base: str, prefix: str) -> list[URLPattern]:
    return [
        path(base, views.streams, name=f"{prefix}streams"),
        path(f"{base}add/<slug:kind>/", views.add, name=f"{prefix}stream_add"),
        path(f"{base}<uuid:stream_id>/", views.edit, name=f"{prefix}stream"),
        path(f"{base}<uuid:stream_id>/<slug:verb>/", views.change, name=f"{prefix}stream_change"),
    ]


urlpatterns = [*_routes(_WORKSPACE, ""), *_routes(_PLATFORM, "platform_")]
