"""Pages of the chat."""

from __future__ import annotations

from django.urls import path

from chat import (
    bud_pages,
    bud_version_pages,
    data_copy_page,
    import_page,
    permission_page,
    platform_provider_page,
    provider_pages,
    reminder_page,
    shared_pages,
    shared_provider_pages,
    turn_page,
    usage_page,
    views,
)
from chat.artifacts import views as artifacts

app_name = "chat"
_BUDS = "w/<slug:workspace_slug>/buds/"
_SHARED = "platform/providers/"
_SHARED_CHAT = "shared/<str:token>/"
_BUD = f"{_BUDS}<uuid:bud_id>/"
urlpatterns = [
    path(
        "w/<slug:workspace_slug>/providers/<uuid:provider_id>/",
        provider_pages.provider_page,
        name="provider",
    ),
    path("w/<slug:workspace_slug>/waiting/", views.waiting, name="waiting"),
    path("w/<slug:workspace_slug>/reminders/", reminder_page.reminders, name="reminders"),
    path(
        "w/<slug:workspace_slug>/reminders/devices/",
        reminder_page.devices,
        name="reminder_devices",
    ),
    path(
        "w/<slug:workspace_slug>/tool-permissions/",
        permission_page.permissions,
        name="permissions",
    ),
    path(
        "w/<slug:workspace_slug>/shared-chats/",
        shared_pages.my_shared_chats,
        name="shared_chats",
    ),
    path(_SHARED_CHAT, shared_pages.shared_chat, name="shared_chat"),
    path(f"{_SHARED_CHAT}diagrams/", shared_pages.shared_diagrams, name="shared_diagrams"),
    path(f"{_SHARED_CHAT}copy/", shared_pages.copy_shared_chat, name="shared_chat_copy"),
    path(
        f"{_SHARED_CHAT}files/<uuid:artifact_id>/<int:number>/",
        shared_pages.shared_file,
        name="shared_file",
    ),
    path(
        f"{_SHARED_CHAT}pictures/<uuid:artifact_id>/<int:number>/",
        shared_pages.shared_picture,
        name="shared_picture",
    ),
    path("w/<slug:workspace_slug>/chat-imports/", import_page.imports, name="imports"),
    path(
        "w/<slug:workspace_slug>/chat-imports/<uuid:import_id>/<slug:verb>/",
        import_page.change_import,
        name="import_change",
    ),
    path("w/<slug:workspace_slug>/your-data/", data_copy_page.data_copies, name="data_copies"),
    path(
        "w/<slug:workspace_slug>/your-data/<uuid:copy_id>/<int:number>/",
        data_copy_page.download_data_copy,
        name="data_copy_part",
    ),
    path(
        "w/<slug:workspace_slug>/your-data/<uuid:copy_id>/<slug:verb>/",
        data_copy_page.change_data_copy,
        name="data_copy_change",
    ),
    path("w/<slug:workspace_slug>/usage/", usage_page.usage, name="usage"),
    path(
        "platform/provider/", platform_provider_page.environment_provider, name="platform_provider"
    ),
    path(_SHARED, shared_provider_pages.shared_providers, name="shared_providers"),
    path(f"{_SHARED}new/", shared_provider_pages.new_shared_provider, name="shared_provider_new"),
    path(
        f"{_SHARED}<uuid:provider_id>/",
        shared_provider_pages.shared_provider,
        name="shared_provider",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/edit/",
        shared_provider_pages.edit_shared_provider,
        name="shared_provider_edit",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/workspaces/<uuid:workspace_id>/",
        shared_provider_pages.part_of_shared,
        name="shared_provider_part",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/<slug:verb>/",
        shared_provider_pages.change_sharing,
        name="shared_provider_change",
    ),
    path(_BUDS, bud_pages.bud_list, name="buds"),
    path(f"{_BUDS}new/", bud_pages.bud_new, name="bud_new"),
    path(f"{_BUDS}test/", bud_pages.bud_test, name="bud_test"),
    path(f"{_BUDS}tools/", bud_pages.bud_tools, name="bud_tools"),
    path(f"{_BUDS}import/", bud_pages.bud_import, name="bud_import"),
    path(f"{_BUDS}keep/<uuid:call_id>/", bud_pages.bud_keep_call, name="bud_keep_call"),
    path(_BUD, bud_pages.bud_editor, name="bud"),
    path(f"{_BUD}versions/", bud_version_pages.bud_versions, name="bud_versions"),
    path(
        f"{_BUD}versions/<int:number>/restore/", bud_version_pages.bud_restore, name="bud_restore"
    ),
    path(f"{_BUD}duplicate/", bud_pages.bud_duplicate, name="bud_duplicate"),
    path(f"{_BUD}bud.yaml", bud_pages.bud_file, name="bud_file"),
    path(f"{_BUD}check/", bud_pages.bud_check, name="bud_check"),
    path(f"{_BUD}quality/", bud_pages.bud_quality, name="bud_quality"),
    path("w/<slug:workspace_slug>/", views.app, name="home"),
    path("w/<slug:workspace_slug>/shell/", views.shell, name="shell"),
    path("w/<slug:workspace_slug>/diagrams/", views.diagrams, name="diagrams"),
    path("w/<slug:workspace_slug>/audit/turns/<uuid:turn_id>/", turn_page.turn_page, name="turn"),
    path("w/<slug:workspace_slug>/c/<uuid:conversation_id>/", views.app, name="conversation"),
    path(
        "w/<slug:workspace_slug>/knowledge/<uuid:file_id>/",
        artifacts.download_knowledge,
        name="knowledge",
    ),
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
