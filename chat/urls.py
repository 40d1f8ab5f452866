"""Pages of the chat."""

from __future__ import annotations

from django.urls import path

from chat import views

app_name = "chat"
urlpatterns = [
    path("w/<slug:workspace_slug>/", views.app, name="home"),
    path("w/<slug:workspace_slug>/c/<uuid:conversation_id>/", views.app, name="conversation"),
]
