"""Pages of the chat."""

from __future__ import annotations

from django.urls import path

from chat.artifacts import views as artifacts
from chat.pages import (
    bud_versions,
    buds,
    data_copies,
    imports,
    permissions,
    platform_provider,
    printing,
    providers,
    reminders,
    shared_chats,
    shared_providers,
    spending,
    turns,
    usage,
    views,
    webhooks,
)

app_name = "chat"
_BUDS = "w/<slug:workspace_slug>/buds/"
_WEBHOOKS = "w/<slug:workspace_slug>/webhooks/"
_SHARED = "platform/providers/"
_SHARED_CHAT = "shared/<str:token>/"
_BUD = f"{_BUDS}<uuid:bud_id>/"
urlpatterns = [
    path(
        "w/<slug:workspace_slug>/providers/<uuid:provider_id>/",
        providers.provider_page,
        name="provider",
    ),
    path("w/<slug:workspace_slug>/waiting/", views.waiting, name="waiting"),
    path("w/<slug:workspace_slug>/reminders/", reminders.reminders, name="reminders"),
    path(
        "w/<slug:workspace_slug>/reminders/devices/",
        reminders.devices,
        name="reminder_devices",
    ),
    path(
        "w/<slug:workspace_slug>/tool-permissions/",
        permissions.permissions,
        name="permissions",
    ),
    path(
        "w/<slug:workspace_slug>/shared-chats/",
        shared_chats.my_shared_chats,
        name="shared_chats",
    ),
    path(_SHARED_CHAT, shared_chats.shared_chat, name="shared_chat"),
    path(f"{_SHARED_CHAT}diagrams/", shared_chats.shared_diagrams, name="shared_diagrams"),
    path(f"{_SHARED_CHAT}copy/", shared_chats.copy_shared_chat, name="shared_chat_copy"),
    path(
        f"{_SHARED_CHAT}files/<uuid:artifact_id>/<int:number>/",
        shared_chats.shared_file,
        name="shared_file",
    ),
    path(
        "w/<slug:workspace_slug>/c/<uuid:conversation_id>/print/",
        printing.print_chat,
        name="print",
    ),
    path(
        f"{_SHARED_CHAT}pictures/<uuid:artifact_id>/<int:number>/",
        shared_chats.shared_picture,
        name="shared_picture",
    ),
    path("w/<slug:workspace_slug>/chat-imports/", imports.imports, name="imports"),
    path(
        "w/<slug:workspace_slug>/chat-imports/<uuid:import_id>/<slug:verb>/",
        imports.change_import,
        name="import_change",
    ),
    path("w/<slug:workspace_slug>/spending/", spending.spending, name="spending"),
    path(_WEBHOOKS, webhooks.webhooks, name="webhooks"),
    path(f"{_WEBHOOKS}add/", webhooks.webhook_add, name="webhook_add"),
    path(f"{_WEBHOOKS}<uuid:webhook_id>/", webhooks.webhook, name="webhook"),
    path(
        f"{_WEBHOOKS}<uuid:webhook_id>/<slug:verb>/",
        webhooks.webhook_change,
        name="webhook_change",
    ),
    path(
        "w/<slug:workspace_slug>/spending/members/<uuid:membership_id>/",
        spending.member_spending,
        name="member_spending",
    ),
    path("w/<slug:workspace_slug>/your-data/", data_copies.data_copies, name="data_copies"),
    path(
        "w/<slug:workspace_slug>/your-data/<uuid:copy_id>/<int:number>/",
        data_copies.download_data_copy,
        name="data_copy_part",
    ),
    path(
        "w/<slug:workspace_slug>/your-data/<uuid:copy_id>/<slug:verb>/",
        data_copies.change_data_copy,
        name="data_copy_change",
    ),
    path("w/<slug:workspace_slug>/usage/", usage.usage, name="usage"),
    path("platform/provider/", platform_provider.environment_provider, name="platform_provider"),
    path(_SHARED, shared_providers.shared_providers, name="shared_providers"),
    path(f"{_SHARED}new/", shared_providers.new_shared_provider, name="shared_provider_new"),
    path(
        f"{_SHARED}<uuid:provider_id>/",
        shared_providers.shared_provider,
        name="shared_provider",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/edit/",
        shared_providers.edit_shared_provider,
        name="shared_provider_edit",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/workspaces/<uuid:workspace_id>/",
        shared_providers.part_of_shared,
        name="shared_provider_part",
    ),
    path(
        f"{_SHARED}<uuid:provider_id>/<slug:verb>/",
        shared_providers.change_sharing,
        name="shared_provider_change",
    ),
    path(_BUDS, buds.bud_list, name="buds"),
    path(f"{_BUDS}new/", buds.bud_new, name="bud_new"),
    path(f"{_BUDS}test/", buds.bud_test, name="bud_test"),
    path(f"{_BUDS}tools/", buds.bud_tools, name="bud_tools"),
    path(f"{_BUDS}import/", buds.bud_import, name="bud_import"),
    path(f"{_BUDS}keep/<uuid:call_id>/", buds.bud_keep_call, name="bud_keep_call"),
    path(_BUD, buds.bud_editor, name="bud"),
    path(f"{_BUD}versions/", bud_versions.bud_versions, name="bud_versions"),
    path(f"{_BUD}versions/<int:number>/restore/", bud_versions.bud_restore, name="bud_restore"),
    path(f"{_BUD}duplicate/", buds.bud_duplicate, name="bud_duplicate"),
    path(f"{_BUD}bud.yaml", buds.bud_file, name="bud_file"),
    path(f"{_BUD}check/", buds.bud_check, name="bud_check"),
    path(f"{_BUD}quality/", buds.bud_quality, name="bud_quality"),
    path("w/<slug:workspace_slug>/", views.app, name="home"),
    path("w/<slug:workspace_slug>/shell/", views.shell, name="shell"),
    path("w/<slug:workspace_slug>/diagrams/", views.diagrams, name="diagrams"),
    path("w/<slug:workspace_slug>/audit/turns/<uuid:turn_id>/", turns.turn_page, name="turn"),
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
