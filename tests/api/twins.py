"""What each form of the product has in the REST interface.

A form is a route that takes POST, or something that the admin lets people do with a class of rows. Where one address has
several buttons, the names of the buttons stand before their operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

Operations = str | tuple[str, ...] | Mapping[str, str]


def operations_in(operations: Operations) -> Iterator[str]:
    """Each operation of an entry below: a method, and an address under ``/api/``."""
    match operations:
        case str():
            yield operations
        case tuple():
            yield from operations
        case _:
            yield from operations.values()


_PROVIDER = "PATCH platform/providers/{id}/"

PAGES: Final[Mapping[str, Operations]] = {
    "confirm_restore": "POST platform/state/confirm-restore/",
    "run_job": "POST platform/jobs/run/",
    "workspace_file": "POST config/",
    # People
    "workspaces:profile": "POST profile/",
    "workspaces:picture": {"give": "POST profile/picture/", "take back": "DELETE profile/picture/"},
    "workspaces:appearance": "POST profile/",
    "workspaces:formats": "POST profile/",
    "workspaces:sessions": {
        "one": "DELETE sessions/{id}/",
        "all others": "POST sessions/sign-out-others/",
    },
    "workspaces:tokens": "POST tokens/",
    "workspaces:revoke_token": "DELETE tokens/{id}/",
    "workspaces:make_join_link": "POST join-links/",
    "workspaces:revoke_join_link": "DELETE join-links/{id}/",
    "workspaces:requests": "POST access-requests/",
    "workspaces:request_change": {
        "grant, decline": "POST access-requests/{id}/decide/",
        "withdraw": "DELETE access-requests/{id}/",
    },
    "workspaces:member_change": {
        "role": "POST members/{id}/role/",
        "suspend": "POST members/{id}/suspend/",
        "resume": "POST members/{id}/resume/",
        "make-owner": "POST members/{id}/make-owner/",
        "sign-out": "POST members/{id}/sign-out/",
        "remove": "DELETE members/{id}/",
    },
    "workspaces:invite": "POST invitations/",
    "workspaces:invitation_change": {
        "resend": "POST invitations/{id}/resend/",
        "revoke": "DELETE invitations/{id}/",
    },
    # The log
    "audit:save_view": "POST audit-views/",
    "audit:delete_view": "DELETE audit-views/{id}/",
    "audit:reviews": "POST audit-sign-offs/",
    "audit:schedules": {
        "preview": "POST audit-schedules/preview/",
        "to_me": "POST audit-schedules/send-to-me/",
        "keep": "POST audit-schedules/",
        "change": "PATCH audit-schedules/{id}/",
    },
    "audit:schedule": {
        "send": "POST audit-schedules/{id}/send/",
        "pause, resume": "PATCH audit-schedules/{id}/",
        "delete": "DELETE audit-schedules/{id}/",
    },
    "audit:sent-file": "POST audit-sent-files/{id}/sign-off/",
    "audit:send-file-again": "POST audit-sent-files/{id}/send-again/",
    "audit:settings": "POST audit-settings/",
    "audit:hold_place": "POST legal-holds/",
    "audit:hold_release": "POST legal-holds/{id}/release/",
    "audit:erase": "POST audit-erasures/",
    "audit:stream_add": "POST audit-streams/",
    "audit:stream": "PATCH audit-streams/{id}/",
    "audit:stream_change": {
        "test": "POST audit-streams/{id}/test/",
        "retry": "POST audit-streams/{id}/retry/",
        "secret": "POST audit-streams/{id}/renew-secret/",
        "pause, resume": "PATCH audit-streams/{id}/",
        "from-now, from-beginning": "POST audit-streams/{id}/restart/",
        "delete": "DELETE audit-streams/{id}/",
    },
    "audit:platform_stream_add": "POST platform/audit-streams/",
    "audit:platform_stream": "PATCH platform/audit-streams/{id}/",
    "audit:platform_stream_change": {
        "test": "POST platform/audit-streams/{id}/test/",
        "retry": "POST platform/audit-streams/{id}/retry/",
        "secret": "POST platform/audit-streams/{id}/renew-secret/",
        "pause, resume": "PATCH platform/audit-streams/{id}/",
        "from-now, from-beginning": "POST platform/audit-streams/{id}/restart/",
        "delete": "DELETE platform/audit-streams/{id}/",
    },
    "audit:alert_add": {"preview": "POST alert-rules/preview/", "add": "POST alert-rules/"},
    "audit:alert_recommended": "POST alert-rules/recommended/",
    "audit:alert_rule": {
        "preview": "POST alert-rules/preview/",
        "save": "PATCH alert-rules/{id}/",
    },
    "audit:alert_change": {
        "on, off": "PATCH alert-rules/{id}/",
        "delete": "DELETE alert-rules/{id}/",
    },
    "audit:notices_read": "POST notices/read/",
    # Servers
    "mcp_servers:add": "POST servers/",
    "mcp_servers:add_from_catalogue": "POST servers/",
    "mcp_servers:add_personal": "POST servers/personal/",
    "mcp_servers:try": {
        "of the workspace": "POST servers/try/",
        "one's own": "POST servers/personal/try/",
    },
    "mcp_servers:rules": "POST config/",
    "mcp_servers:clients": "POST tokens/",
    "mcp_servers:client_end": {
        "one's own": "DELETE mcp-clients/{id}/",
        "a member's": "DELETE member-mcp-clients/{id}/",
    },
    "mcp_servers:call_rules": "POST call-rules/try/",
    "mcp_servers:call_rule_new": "POST call-rules/",
    "mcp_servers:call_rule": "PATCH call-rules/{id}/",
    "mcp_servers:call_rule_enabled": "PATCH call-rules/{id}/",
    "mcp_servers:call_rule_delete": "DELETE call-rules/{id}/",
    "mcp_servers:import": {
        "look": "POST server-lists/preview/",
        "add": "POST server-lists/",
    },
    "mcp_servers:set_global": "PATCH global-servers/{id}/",
    "mcp_servers:catalogue_install": "POST catalogue/install/",
    "mcp_servers:catalogue_audience": "POST catalogue/audience/",
    "mcp_servers:catalogue_uninstall": "POST catalogue/uninstall/",
    "mcp_servers:connection_revoke": "DELETE connections/{id}/",
    "mcp_servers:settings": "PATCH servers/{id}/",
    "mcp_servers:test": "POST servers/{id}/test/",
    "mcp_servers:refresh": "POST servers/{id}/refresh/",
    "mcp_servers:connect": "POST servers/{id}/connect/",
    "mcp_servers:disconnect": "POST servers/{id}/disconnect/",
    # It sets `protocol`, and tests.
    "mcp_servers:use_sessions": ("PATCH servers/{id}/", "POST servers/{id}/test/"),
    "mcp_servers:active": "PATCH servers/{id}/",
    "mcp_servers:delete": "DELETE servers/{id}/",
    "mcp_servers:review": "POST servers/{id}/accept-tools/",
    "mcp_servers:resource_enabled": "PATCH resources/{id}/",
    "mcp_servers:prompt_enabled": "PATCH prompts/{id}/",
    "mcp_servers:trace_body": "POST trace/{id}/body/",
    "mcp_servers:tool_enabled": "PATCH tools/{id}/",
    "mcp_servers:tool_approval": "PATCH tools/{id}/",
    "mcp_servers:tool_cache": "PATCH tools/{id}/",
    "mcp_servers:tool_accept": "POST tools/{id}/accept/",
    "mcp_servers:tool_try": "POST tools/{id}/test/",
    "mcp_servers:klavis_save": (
        "PATCH hosted-servers/account/",
        "POST hosted-servers/account/test/",
    ),
    "mcp_servers:klavis_test": "POST hosted-servers/account/test/",
    "mcp_servers:klavis_remove": "DELETE hosted-servers/account/",
    "mcp_servers:klavis_strata": "POST hosted-servers/",
    "mcp_servers:klavis_forget_removal": "DELETE hosted-removals/{id}/",
    "mcp_servers:klavis_poll": "POST hosted-servers/{id}/poll/",
    "mcp_servers:klavis_sign_in": "POST hosted-servers/{id}/sign-in/",
    "mcp_servers:klavis_credential": "POST hosted-servers/{id}/credential/",
    "mcp_servers:klavis_read_only": "PATCH hosted-servers/{id}/",
    "mcp_servers:klavis_rest": "PATCH hosted-servers/{id}/",
    "mcp_servers:klavis_services": "PATCH hosted-servers/{id}/",
    "mcp_servers:klavis_uninstall": "DELETE hosted-servers/{id}/",
    "mcp_servers:klavis_rule": "POST action-rules/",
    "mcp_servers:klavis_rule_remove": "DELETE action-rules/{id}/",
    # Models
    "chat:provider": {
        "test": "POST providers/{id}/check/",
        "keep": "POST providers/{id}/check/",
        "embedding_model": "PATCH providers/{id}/",
        "demo_buds": "PATCH buds/{id}/",
        "api_key": "POST providers/{id}/rotate-key/",
    },
    "chat:platform_provider": "POST platform/environment-provider/test/",
    "chat:shared_provider_new": "POST platform/providers/",
    "chat:shared_provider": "POST platform/providers/{id}/test/",
    "chat:shared_provider_edit": _PROVIDER,
    "chat:shared_provider_part": "PATCH platform/providers/{id}/workspaces/{workspace_id}/",
    "chat:shared_provider_change": {
        "give": "POST platform/providers/{id}/give/",
        "withdraw": "POST platform/providers/{id}/withdraw/",
        "on, off": "POST platform/providers/{id}/switch/",
        "delete": "DELETE platform/providers/{id}/",
    },
    "chat:webhook_add": "POST webhooks/",
    "chat:webhook": "PATCH webhooks/{id}/",
    "chat:webhook_change": {
        "test": "POST webhooks/{id}/test/",
        "secret": "POST webhooks/{id}/renew-secret/",
        "on, off": "PATCH webhooks/{id}/",
        "delete": "DELETE webhooks/{id}/",
    },
    "chat:spending": "POST spending-limits/",
    "chat:member_spending": "POST member-spending/{id}/limit/",
    # Buds
    "chat:bud_new": "POST buds/",
    "chat:bud": "PATCH buds/{id}/",
    "chat:bud_test": "POST buds/test/",
    "chat:bud_import": "POST buds/import/",
    "chat:bud_keep_call": "POST checks/from-call/",
    "chat:bud_restore": "POST buds/{id}/restore/",
    "chat:bud_duplicate": "POST buds/{id}/duplicate/",
    "chat:bud_check": "POST buds/{id}/check-runs/",
    # A person's own
    "chat:reminders": "POST reminders/",
    "chat:reminder_devices": {
        "add": "POST push-devices/",
        "test": "POST push-devices/{id}/test/",
        "remove": "DELETE push-devices/{id}/",
    },
    "chat:permissions": "DELETE tool-permissions/{id}/",
    "chat:shared_chats": "DELETE conversations/{id}/share/",
    "chat:shared_chat_copy": "POST shared-chats/{token}/copy/",
    "chat:imports": "POST chat-imports/",
    "chat:import_change": {
        "remove": "POST chat-imports/{id}/remove/",
        "restore": "POST chat-imports/{id}/restore/",
    },
    "chat:data_copies": "POST data-copies/",
    "chat:data_copy_change": {
        "cancel": "POST data-copies/{id}/cancel/",
        "erase": "POST data-copies/{id}/erase/",
    },
}
"""By the name of the route."""

ADMIN: Final[Mapping[str, Operations]] = {
    "workspaces.Membership change": "POST members/{id}/role/",
    "workspaces.Membership delete": "DELETE members/{id}/",
    "workspaces.Membership suspend": "POST members/{id}/suspend/",
    "workspaces.Membership let_in": "POST members/{id}/resume/",
    "workspaces.Membership make_member": "POST members/{id}/role/",
    "workspaces.Membership make_admin": "POST members/{id}/role/",
    "workspaces.Membership make_owner": "POST members/{id}/role/",
    "workspaces.Membership let_audit": "POST members/{id}/role/",
    "workspaces.Membership no_longer_audit": "POST members/{id}/role/",
    "workspaces.Membership sign_out": "POST members/{id}/sign-out/",
    "workspaces.Invitation add": "POST invitations/",
    "workspaces.Invitation send_again": "POST invitations/{id}/resend/",
    "workspaces.Invitation revoke": "DELETE invitations/{id}/",
    "workspaces.ApiToken delete": "DELETE member-tokens/{id}/",
    "workspaces.ApiToken revoke": "DELETE member-tokens/{id}/",
    "workspaces.Workspace suspend": "POST platform/workspaces/{id}/suspend/",
    "workspaces.Workspace open_again": "POST platform/workspaces/{id}/resume/",
    "workspaces.User switch_off": "PATCH platform/accounts/{id}/",
    "workspaces.User remove_picture": "DELETE platform/accounts/{id}/picture/",
    "workspaces.User turn_off_two_steps": "DELETE platform/accounts/{id}/two_steps/",
    "workspaces.User switch_on": "PATCH platform/accounts/{id}/",
    "workspaces.Workspace add": "POST platform/workspaces/",
    "workspaces.Workspace change": {
        "fields": "PATCH platform/workspaces/{id}/",
        "is_active": "POST platform/workspaces/{id}/suspend/",
        "is_active, again": "POST platform/workspaces/{id}/resume/",
    },
    "workspaces.User add": "POST platform/accounts/",
    "workspaces.User change": "PATCH platform/accounts/{id}/",
    "chat.Bud add": "POST buds/",
    "chat.Bud change": "PATCH buds/{id}/",
    "chat.Bud archive": "PATCH buds/{id}/",
    "chat.Bud put_back": "PATCH buds/{id}/",
    "chat.ModelProvider add": "POST providers/",
    "chat.ModelProvider change": "PATCH providers/{id}/",
    "chat.ModelProvider switch_on": "PATCH providers/{id}/",
    "chat.ModelProvider switch_off": "PATCH providers/{id}/",
    "chat.ModelProvider test_connections": "POST providers/{id}/check/",
    "chat.ModelProvider delete": "DELETE providers/{id}/",
    "chat.ModelProvider rows of chat.ProviderModel": {
        "add": "POST provider-models/",
        "change": "PATCH provider-models/{id}/",
        "delete": "DELETE provider-models/{id}/",
    },
    "chat.ProviderModel add": "POST provider-models/",
    "chat.ProviderModel change": "PATCH provider-models/{id}/",
    "chat.ProviderModel delete": "DELETE provider-models/{id}/",
    "chat.SharedChat delete": "DELETE member-shares/{id}/",
    "chat.SharedChat stop": "DELETE member-shares/{id}/",
    "klavis.KlavisInstance uninstall": "DELETE hosted-servers/{id}/",
    "klavis.KlavisRemoval give_up": "DELETE hosted-removals/{id}/",
    "mcp_servers.ToolPermission revoke": "DELETE member-tool-permissions/{id}/",
    "mcp_servers.ActionRule take_back": "DELETE action-rules/{id}/",
    "mcp_servers.McpServer add": "POST servers/",
    "mcp_servers.McpServer change": "PATCH servers/{id}/",
    "mcp_servers.McpServer delete": "DELETE servers/{id}/",
    "mcp_servers.McpServer test_connections": "POST servers/{id}/test/",
    "mcp_servers.McpServer refresh_tool_lists": "POST servers/{id}/refresh/",
    "mcp_servers.McpServer disconnect": "POST servers/{id}/disconnect/",
    "mcp_servers.McpServer switch_on": "PATCH servers/{id}/",
    "mcp_servers.McpServer switch_off": "PATCH servers/{id}/",
    "mcp_servers.McpTool change": "PATCH tools/{id}/",
    "mcp_servers.McpTool switch_on": "PATCH tools/{id}/",
    "mcp_servers.McpTool switch_off": "PATCH tools/{id}/",
    "mcp_servers.McpTool approval_confirm": "PATCH tools/{id}/",
    "mcp_servers.McpTool approval_auto": "PATCH tools/{id}/",
    "mcp_servers.McpTool approval_deny": "PATCH tools/{id}/",
    "mcp_servers.McpTool approval_inherit": "PATCH tools/{id}/",
    "mcp_servers.McpResource change": "PATCH resources/{id}/",
    "mcp_servers.McpResource switch_on": "PATCH resources/{id}/",
    "mcp_servers.McpResource switch_off": "PATCH resources/{id}/",
    "mcp_servers.McpPrompt change": "PATCH prompts/{id}/",
    "mcp_servers.McpPrompt switch_on": "PATCH prompts/{id}/",
    "mcp_servers.McpPrompt switch_off": "PATCH prompts/{id}/",
    "mcp_servers.OAuthGrant disconnect": "DELETE connections/{id}/",
    "mcp_servers.StdioProgram add": "POST platform/programs/",
    "mcp_servers.StdioProgram change": "PATCH platform/programs/{id}/",
    "mcp_servers.StdioProgram delete": "DELETE platform/programs/{id}/",
    "mcp_servers.StdioProgram accept_files": "POST platform/programs/{id}/accept/",
    "mcp_servers.StdioProgram withdraw": "PATCH platform/programs/{id}/",
    "a list's saved views": {
        "save": "POST list-views/",
        "update, edit": "PATCH list-views/{id}/",
        "delete": "DELETE list-views/{id}/",
    },
}
"""By the label of the model and what can be done there."""

LISTS: Final[Mapping[str, str]] = {
    "audit.AuditEntry": "GET audit-entries/",
    "chat.Bud": "GET buds/",
    "chat.ModelProvider": "GET providers/",
    "chat.ProviderModel": "GET provider-models/",
    "chat.SharedChat": "GET member-shares/",
    "chat.Turn": "GET ratings/",
    "klavis.KlavisAccount": "GET hosted-servers/account/",
    "klavis.KlavisInstance": "GET hosted-servers/",
    "klavis.KlavisRemoval": "GET hosted-removals/",
    "mcp_servers.ToolPermission": "GET member-tool-permissions/",
    "mcp_servers.ActionRule": "GET action-rules/",
    "mcp_servers.GlobalServer": "GET platform/servers/",
    "mcp_servers.HealthCheck": "GET health-checks/",
    "mcp_servers.McpPrompt": "GET prompts/",
    "mcp_servers.McpResource": "GET resources/",
    "mcp_servers.McpServer": "GET servers/",
    "mcp_servers.McpTool": "GET tools/",
    "mcp_servers.OAuthGrant": "GET connections/",
    "mcp_servers.StdioProgram": "GET platform/programs/",
    "workspaces.ApiToken": "GET member-tokens/",
    "workspaces.Invitation": "GET invitations/",
    "workspaces.Membership": "GET members/",
    "workspaces.User": "GET platform/accounts/",
    "workspaces.Workspace": "GET platform/workspaces/",
}
"""Each list of the admin."""

DOWNLOADS: Final[Mapping[str, str]] = {
    "workspace_file_download": "GET config/",
    "audit:export": "GET audit-files/log/",
    "audit:report-file": "GET audit-files/report/",
    "audit:proof-export": "GET audit-files/proof/",
    "audit:verifier": "GET audit-files/verifier/",
    "mcp_servers:export": "GET server-lists/export/",
    "mcp_servers:trace_download": "GET servers/{id}/trace-file/",
    "chat:bud_file": "GET buds/{id}/export/",
    "chat:bud_tools": "GET buds/{id}/tools/",
    "chat:data_copy_part": "GET data-copies/{id}/parts/{number}/",
    "chat:knowledge": "GET knowledge/{id}/content/",
    "chat:artifact": "GET artifacts/{id}/versions/{number}/content/",
}
"""Routes that give a file, or what the page's script reads."""

_SIGNING_IN = "Signing in, and what it takes, is a person's in a browser."
_JOINING = "Whoever comes by a link signs in or makes an account, which takes a browser."

WITHOUT: Final[Mapping[str, str]] = {
    **{
        f"account_{name}": _SIGNING_IN
        for name in (
            *("login", "logout", "signup", "inactive", "email"),
            *("email_verification_sent", "confirm_email"),
            *("change_password", "set_password", "reset_password", "reauthenticate"),
            "reset_password_from_key",
        )
    },
    **{
        f"mfa_{name}": _SIGNING_IN
        for name in (
            *("authenticate", "activate_totp", "deactivate_totp"),
            *("generate_recovery_codes", "download_recovery_codes"),
            *("login_webauthn", "list_webauthn", "add_webauthn", "remove_webauthn"),
        )
    },
    "workspaces:setup": "The first owner of the platform makes their account with a link of the console.",
    "workspaces:accept_invitation": _JOINING,
    "workspaces:join": _JOINING,
    "workspaces:leave": "A program that acts for somebody does not end their membership.",
    "mcp_servers:sign_in": "The issuer asks a person in a browser.",
    "mcp_endpoint": "It is no form: MCP clients speak their own protocol there.",
    "mcp_authorize": "A person lets a client in, in a browser.",
    **{
        f"mcp_{name}": "It is no form: MCP clients speak OAuth there."
        for name in ("register", "token", "revoke")
    },
    "workspaces.User password": "Whoever sets somebody's password can take the account over (SEC-502).",
}
"""Forms that have no operation, and why."""
