"""Mounts each app's routes."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules

from config import health
from config.platform.platform_state import (
    confirm_restore,
    platform_jobs,
    platform_state,
    platform_storage,
    platform_versions,
    run_job,
)
from config.serving import errors, installing
from config.telemetry import metrics
from workspaces.process.unused_libraries import without

# They try these for clients of an older schema, and for fields of PostgreSQL.
with without("requests", *(() if settings.TRELLIS.is_production else ("psycopg",))):
    import_module("rest_framework.compat")
    import_module("unfold.overrides")
autodiscover_modules("admin", "pages.admin", register_to=admin.site)

_STATE = [
    path("", platform_state, name="platform_state"),
    path("confirm-restore/", confirm_restore, name="confirm_restore"),
    path("jobs/", platform_jobs, name="platform_jobs"),
    path("jobs/run/", run_job, name="run_job"),
    path("storage/", platform_storage, name="platform_storage"),
    path("versions/", platform_versions, name="platform_versions"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.show, name="metrics"),
    path("manifest.webmanifest", installing.manifest, name="manifest"),
    path("worker.js", installing.worker, name="worker"),
    path("offline/", installing.offline, name="offline"),
    path("api/", include("config.rest.api")),
    path("platform/state/", include(_STATE)),
    path("admin/", admin.site.urls),
    path("accounts/", include("workspaces.pages.account_urls")),
    path("", include("config.workspace_files.urls")),
    path("", include("workspaces.urls")),
    path("", include("audit.urls")),
    path("", include("mcp_servers.pages.urls")),
    path("", include("mcp_servers.endpoint.urls")),
    path("", include("chat.urls")),
]

handler400 = errors.bad_request
handler403 = errors.permission_denied
handler404 = errors.not_found
handler500 = errors.server_error
