"""Pages of the chat."""

from __future__ import annotations

from django.urls import path

from chat import turn_page, views
from chat.artifacts import views as artifacts

app_name = "chat"
urlpatterns = [
    path("w/<slug:workspace_slug>/", views.app, name="home"),
    path("w/<slug:workspace_slug>/diagrams/", views.diagrams, name="diagrams"),
    path("w/<slug:workspace_slug>/audit/turns/<uuid:turn_id>/", turn_page.turn_page, name="turn"),
    path("w/<slug:workspace_slug>/c/<uuid:conversation_id>/", views.app, name="conversation"),
    path(
        "w/<slug:workspace_slug>/artifacts/<uuid:artifact_id>/<int:number>/",
        artifacts.download,
        name="artifact",
    ),
    path(
        "w/<slug:workspace_slug>/artifacts/<uuid:artifact_id>/<int:number>/preview/",
        artifacts.preview,
        name="artifact_preview",
    ),
]
