"""Pages of a workspace's file."""

from __future__ import annotations

from django.urls import path

from config.workspace_files import views

urlpatterns = [
    path("w/<slug:workspace_slug>/file/", views.workspace_file, name="workspace_file"),
    path("w/<slug:workspace_slug>/file/download/", views.download, name="workspace_file_download"),
]
