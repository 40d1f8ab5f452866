"""A sample for every route: which ids stand in its address, and bodies for its methods.

``own`` bodies are of the caller's side and would be accepted; ``foreign`` ones name the other side's rows wherever an id
can stand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from tests.isolation.world import BROWSER_KEY, Side
from workspaces.delivery.web_push import vapid_keys

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

Ids = Callable[[Side], Mapping[str, Any]]
Body = Callable[[Side], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How to call one route."""

    ids: Ids = lambda _side: {}
    """The arguments of its address, from one side's rows."""
    bodies: tuple[Body, ...] = ()
    """Bodies that name rows of one side, for the methods that take one."""
    is_public: bool = False
    """Answers people who are not signed in."""
    asks_no_session: bool = False
    """Programs of strangers send to it, and whoever is signed in sends no more than they."""
    reads: bool = True
    """GET gives a page or data to somebody of the workspace; False: it only takes changes."""
    gives_content: bool = False
    """Gives a file of a person's, under a policy of its own that is narrower than the pages'."""
    writes_on_get: frozenset[str] = field(default_factory=frozenset)
    """Tables that a GET may write to, each with a good reason given here."""


def _slug(side: Side) -> dict[str, Any]:
    return {"workspace_slug": side.slug}


def _named(side: Side) -> dict[str, Any]:
    return {"name": side.slug}


def _in_workspace(**names: str) -> Ids:
    def ids(side: Side) -> dict[str, Any]:
        return {**_slug(side), **{argument: side[name].pk for argument, name in names.items()}}

    return ids


def _shared(side: Side) -> dict[str, Any]:
    return {"provider_id": side["shared"].shared_id}


def _shared_pk(side: Side) -> dict[str, Any]:
    return {"pk": side["shared"].shared_id}


def _own_workspace(side: Side) -> dict[str, Any]:
    return {"pk": side.tenant.workspace.pk}


def _member(side: Side) -> dict[str, Any]:
    return {"pk": side.tenant.member.pk}


def _pk(name: str) -> Ids:
    return lambda side: {"pk": side[name].pk}


def _link(side: Side) -> dict[str, Any]:
    """The token of the side's shared chat."""
    return {"token": f"token-of-{side.slug}"}


def _link_file(side: Side) -> dict[str, Any]:
    return {**_link(side), "artifact_id": side["artifact"].pk, "number": 1}


def _body(**names: str) -> Body:
    """A body in which each key holds the id of that row; ``=text`` stands for itself."""

    def body(side: Side) -> dict[str, Any]:
        return {
            key: name[1:] if name.startswith("=") else str(side[name].pk)
            for key, name in names.items()
        }

    return body


def _call_rule(side: Side) -> dict[str, Any]:
    return {"name": "A rule", "effect": "deny", "servers": ["no such server"], "tools": ["*"]}


def _call_rule_form(side: Side) -> dict[str, Any]:
    return {"name": "A rule", "what": "deny", "servers": "no such server", "tools": "*"}


def _mcp_config(side: Side) -> dict[str, Any]:
    return {
        "name": "A bud",
        "slug": "a-bud",
        "provider_id": str(side["provider"].pk),
        "mcp_config": {"servers": [str(side["server"].pk)]},
    }


def _bud_form(side: Side) -> dict[str, Any]:
    """The editor's form, with a server and a provider of that side."""
    config = json.dumps({"servers": [str(side["server"].pk)]})
    return {
        "name": "A bud",
        "slug": "a-bud",
        "avatar": "🌱",
        "colour": "grey",
        "tool_protocol": "auto",
        "visibility": "workspace",
        "mcp_config": config,
        "model": f"{side['provider'].pk}|",
        "bud": str(side["bud"].pk),
    }


def _check(_side: Side) -> dict[str, Any]:
    return {"question": "What is it?", "contains": ["it"]}


def _check_plan(_side: Side) -> dict[str, Any]:
    return {"before_saving": True, "every": "day"}


def _bud_yaml(side: Side) -> dict[str, Any]:
    # By its id: what is typed is named in the answer, so a name would be found in it.
    server = side["server"].pk
    return {"yaml": f"name: A bud\nslug: a-bud\ntools: {{servers: ['{server}']}}\n"}


def _workspace_yaml(side: Side) -> dict[str, Any]:
    server = side["server"].pk
    text = f"buds: [{{name: A bud, slug: a-bud, tools: {{servers: ['{server}']}}}}]"
    return {"text": text, "apply": "1"}


def _bud_document(side: Side) -> dict[str, Any]:
    tools = {"servers": [str(side["server"].pk)]}
    return {"buds": [{"name": "A bud", "slug": "a-bud", "tools": tools}]}


def _body_of_services(_side: Side) -> dict[str, Any]:
    return {"services": ["gmail"]}


def _draft(side: Side) -> dict[str, Any]:
    return {**_mcp_config(side), "bud_id": str(side["bud"].pk)}


def _token(_side: Side) -> dict[str, Any]:
    ends = timezone.now() + timedelta(days=1)
    return {"name": "script", "scopes": ["chat"], "expires_at": ends.isoformat()}


def _webhook(_side: Side) -> dict[str, Any]:
    return {"url": "https://hook.example.org/", "events": ["turn.finished"]}


def _overrides(side: Side) -> dict[str, Any]:
    return {"mcp_config_overrides": {"additional_servers": [str(side["server"].pk)]}}


def _model(side: Side) -> dict[str, Any]:
    row = side["priced"]
    return {"model": {"provider_id": str(row.provider_id), "name": row.model}}


def _new_conversation(side: Side) -> dict[str, Any]:
    return {"bud_id": str(side["bud"].pk), **_model(side), **_overrides(side)}


def _content(side: Side) -> dict[str, Any]:
    return {"pk": side["artifact"].pk, "number": 1}


def _file(side: Side) -> dict[str, Any]:
    return {**_slug(side), "artifact_id": side["artifact"].pk, "number": 1}


def _known(side: Side) -> dict[str, Any]:
    return {**_slug(side), "source": "known", "entry_slug": "deepwiki"}


def _plain_server(side: Side) -> dict[str, Any]:
    return {"server_id": side["server"].pk}


_server = _in_workspace(server_id="server")
_tool = _in_workspace(server_id="server", tool_id="tool")
_hosted = _in_workspace(instance_id="klavis_instance")
_message = _in_workspace(server_id="server", message_id="trace")
_page = Sample(ids=_slug)
_action_on_server = Sample(ids=_server, reads=False)
_action_on_tool = Sample(ids=_tool, reads=False)
# The session remembers which workspace was opened last.
_SESSION = frozenset({"django_session"})
# Reading somebody's bodies and taking the log away are themselves entries.
_AUDIT = _SESSION | {"audit_auditentry"}
_public = Sample(is_public=True, writes_on_get=_SESSION)

SAMPLES: dict[str, Sample] = {
    "healthz": _public,
    "readyz": _public,
    "manifest": _public,
    "worker": _public,
    "offline": _public,
    "metrics": Sample(reads=False),
    "account_login": _public,
    "account_signup": _public,
    "account_inactive": _public,
    "account_reset_password": _public,
    "account_reset_password_done": _public,
    "account_reset_password_from_key": Sample(
        ids=lambda _: {"uidb36": "1", "key": "a-b"}, is_public=True, writes_on_get=_SESSION
    ),
    "account_reset_password_from_key_done": _public,
    "account_email_verification_sent": _public,
    "account_confirm_email": Sample(
        ids=lambda _: {"key": "a"}, is_public=True, writes_on_get=_SESSION
    ),
    "account_logout": Sample(is_public=True),
    "account_email": Sample(reads=False),
    "account_change_password": Sample(),
    "account_set_password": Sample(reads=False),
    "account_reauthenticate": Sample(),
    "sso": Sample(reads=False),
    "sso_callback": Sample(reads=False),
    "mfa_index": Sample(),
    "mfa_authenticate": Sample(reads=False),
    "mfa_login_webauthn": Sample(reads=False),
    "mfa_list_webauthn": Sample(),
    "mfa_add_webauthn": Sample(reads=False),
    "mfa_remove_webauthn": Sample(ids=lambda _side: {"pk": 1}, reads=False),
    "mfa_activate_totp": Sample(writes_on_get=_SESSION),
    "mfa_deactivate_totp": Sample(reads=False),
    "mfa_view_recovery_codes": Sample(reads=False),
    "mfa_generate_recovery_codes": Sample(),
    "mfa_download_recovery_codes": Sample(reads=False),
    "api:schema": _public,
    "api:docs": _public,
    "api:audit-entries-list": Sample(),
    "api:audit-entries-detail": Sample(ids=_pk("entry"), writes_on_get=_AUDIT),
    "api:audit-calls-detail": Sample(
        ids=lambda side: {"pk": side["entry"].call_id}, writes_on_get=_AUDIT
    ),
    "api:audit-reports-list": Sample(),
    **{
        f"api:audit-files-{name}": Sample(writes_on_get=_AUDIT)
        for name in ("log", "report", "proof")
    },
    "api:audit-files-verifier": Sample(),
    "api:alert-rules-list": Sample(
        bodies=(_body(name="=errors", condition="=timeout", threshold="=5", window_minutes="=15"),)
    ),
    "api:alert-rules-detail": Sample(ids=_pk("rule"), bodies=(_body(name="=renamed"),)),
    "api:audit-streams-list": Sample(
        bodies=(_body(name="=SIEM", kind="=otlp", target="=https://sink.example.org/"),)
    ),
    "api:audit-streams-detail": Sample(ids=_pk("stream"), bodies=(_body(name="=renamed"),)),
    "api:audit-streams-test": Sample(ids=_pk("stream"), reads=False),
    "api:audit-streams-retry": Sample(ids=_pk("stream"), reads=False),
    "api:audit-streams-restart": Sample(
        ids=_pk("stream"), bodies=(_body(start="=now"),), reads=False
    ),
    "api:audit-streams-renew-secret": Sample(ids=_pk("stream"), reads=False),
    "api:audit-views-list": Sample(
        bodies=(_body(name="=mine", page="=log", query="=outcome:refused"),)
    ),
    "api:audit-views-detail": Sample(ids=_pk("view"), bodies=(_body(query="=tool:x"),)),
    "api:audit-schedules-list": Sample(
        bodies=(
            lambda side: {
                "name": "weekly",
                "format": "csv",
                "cadence": "weekly",
                "delivery": "mail",
                "recipients": [str(side.tenant.auditor.pk)],
            },
        )
    ),
    "api:audit-schedules-detail": Sample(
        ids=_pk("schedule"), bodies=(lambda _: {"is_active": False},)
    ),
    "api:audit-schedules-preview": Sample(
        bodies=(
            _body(name="=x", format="=csv", cadence="=daily", delivery="=mail", query="=tool:x"),
        ),
        reads=False,
    ),
    "api:audit-schedules-send-to-me": Sample(
        bodies=(
            _body(name="=x", format="=csv", cadence="=daily", delivery="=mail", query="=tool:x"),
        ),
        reads=False,
    ),
    "api:audit-schedules-choices": Sample(),
    "api:audit-sent-files-list": Sample(),
    "api:audit-sent-files-detail": Sample(ids=_pk("sent_file")),
    "api:audit-sent-files-send-again": Sample(ids=_pk("sent_file"), reads=False),
    "api:audit-sent-files-sign-off": Sample(
        ids=_pk("sent_file"), bodies=(_body(note="=seen"),), reads=False
    ),
    "api:audit-schedules-send": Sample(ids=_pk("schedule"), reads=False),
    "api:audit-sign-offs-list": Sample(
        bodies=(_body(since="=2026-01-01T00:00:00Z", until="=2026-01-02T00:00:00Z"),)
    ),
    "api:audit-sign-offs-detail": Sample(ids=_pk("sign_off")),
    "api:audit-settings-list": Sample(bodies=(lambda _: {"keep_days": 90},)),
    "api:legal-holds-list": Sample(bodies=(_body(reason="=x"),)),
    "api:legal-holds-detail": Sample(ids=_pk("hold")),
    "api:legal-holds-release": Sample(ids=_pk("hold"), reads=False),
    "api:audit-erasures-list": Sample(
        bodies=(_body(email="=nobody@example.org", reason="=x"),), reads=False
    ),
    "api:audit-turns-detail": Sample(ids=_pk("turn"), writes_on_get=_AUDIT),
    "api:servers-list": Sample(),
    "api:servers-detail": Sample(
        ids=_pk("server"), bodies=(_body(name="=renamed"), _body(workspace="server"))
    ),
    "api:servers-accept-tools": Sample(
        ids=_pk("server"),
        bodies=(
            lambda side: {"tools": [{"tool": str(side["tool"].pk), "definition_hash": "0" * 64}]},
        ),
        reads=False,
    ),
    "api:servers-refresh": Sample(ids=_pk("server"), reads=False),
    "api:servers-test": Sample(ids=_pk("server"), reads=False),
    "api:servers-people": Sample(ids=_pk("server")),
    "api:catalogue-list": Sample(),
    "api:catalogue-install": Sample(
        bodies=(_body(source="=known", slug="=deepwiki", for_workspace="=x"),), reads=False
    ),
    "api:catalogue-uninstall": Sample(
        bodies=(_body(source="=known", slug="=deepwiki", server_id="server"),), reads=False
    ),
    "api:catalogue-audience": Sample(
        bodies=(_body(source="=known", slug="=deepwiki", is_for_everybody="=on"),), reads=False
    ),
    "api:connections-list": Sample(),
    "api:connections-detail": Sample(ids=_pk("grant"), reads=False),
    "mcp_servers:catalogue": _page,
    "mcp_servers:buds_to_choose": _page,
    "mcp_servers:catalogue_install": Sample(ids=_known, reads=False),
    "mcp_servers:catalogue_audience": Sample(
        ids=_known, bodies=(_body(is_for_everybody="=on"),), reads=False
    ),
    "mcp_servers:catalogue_uninstall": Sample(
        ids=lambda side: {**_known(side), "server_id": side["server"].pk}, reads=False
    ),
    "mcp_servers:connections": _page,
    "mcp_servers:connection_revoke": Sample(ids=_in_workspace(grant_id="grant"), reads=False),
    "mcp_servers:sign_in": Sample(ids=_server),
    "mcp_servers:server_people": Sample(ids=_server),
    # Comes without a state, so it says that the sign-in has to be begun again.
    "mcp_servers:oauth_callback": Sample(ids=_plain_server, reads=False, writes_on_get=_SESSION),
    "mcp_servers:oauth_client_document": Sample(
        ids=_plain_server, is_public=True, writes_on_get=_SESSION
    ),
    "api:servers-try-out": Sample(
        bodies=(_body(name="=new", url="=https://new.example.org/mcp"),), reads=False
    ),
    "api:servers-trace-file": Sample(ids=_pk("server"), writes_on_get=_AUDIT),
    "api:health-checks-list": Sample(),
    "api:action-rules-list": Sample(
        bodies=(_body(server_id="server", action="=send", effect="=deny"),)
    ),
    "api:action-rules-detail": Sample(ids=_pk("action_rule")),
    "api:servers-connect": Sample(ids=_pk("server"), reads=False),
    "api:servers-disconnect": Sample(ids=_pk("server"), reads=False),
    "api:servers-connections": Sample(ids=_pk("server")),
    "api:servers-try-personal": Sample(
        bodies=(_body(name="=mine", url="=https://new.example.org/mcp"),), reads=False
    ),
    "api:servers-personal": Sample(
        bodies=(_body(name="=mine", url="=https://new.example.org/mcp"),), reads=False
    ),
    "api:resources-list": Sample(),
    "api:resources-detail": Sample(ids=_pk("resource"), bodies=(lambda _: {"is_enabled": False},)),
    "api:resources-read-content": Sample(ids=_pk("resource"), reads=False),
    "api:prompts-list": Sample(),
    "api:prompts-detail": Sample(ids=_pk("prompt"), bodies=(lambda _: {"is_enabled": False},)),
    "api:prompts-fill": Sample(
        ids=_pk("prompt"), bodies=(lambda _: {"arguments": {}},), reads=False
    ),
    "api:trace-list": Sample(),
    "api:trace-detail": Sample(ids=_pk("trace")),
    "api:trace-body": Sample(ids=_pk("trace"), reads=False),
    "api:global-servers-list": Sample(),
    "api:global-servers-detail": Sample(
        # The platform's servers belong to no workspace.
        ids=_pk("server"),
        bodies=(lambda _: {"is_on": True},),
        reads=False,
    ),
    "api:server-lists-list": Sample(
        bodies=(
            lambda _: {"servers": '{"mcpServers": {"new": {"url": "https://new.example.org/"}}}'},
        ),
        reads=False,
    ),
    "api:server-lists-export": Sample(),
    "api:server-lists-preview": Sample(
        bodies=(lambda _: {"servers": '{"mcpServers": {}}'},), reads=False
    ),
    "api:call-rules-list": Sample(bodies=(_call_rule,)),
    "api:call-rules-detail": Sample(ids=_pk("call_rule"), bodies=(_call_rule,)),
    "api:call-rules-try-out": Sample(bodies=(_body(server="=notes", tool="=add"),), reads=False),
    "api:tools-list": Sample(),
    "api:tools-detail": Sample(ids=_pk("tool"), bodies=(lambda _: {"is_enabled": False},)),
    "api:tools-accept": Sample(ids=_pk("tool"), reads=False),
    "api:tools-test": Sample(ids=_pk("tool"), bodies=(lambda _: {"arguments": {}},), reads=False),
    "api:buds-list": Sample(bodies=(_mcp_config,)),
    "api:buds-detail": Sample(ids=_pk("bud"), bodies=(_mcp_config, _body(name="=renamed"))),
    "api:models-list": Sample(),
    "api:waiting-list": Sample(),
    "api:usage-list": Sample(),
    "api:spending-limits-list": Sample(bodies=(_body(tokens="=1000"),)),
    "api:member-spending-list": Sample(),
    "api:member-spending-detail": Sample(ids=_pk("membership")),
    "api:member-spending-limit": Sample(
        ids=_pk("membership"), bodies=(_body(which="=own", tokens="=1000"),), reads=False
    ),
    "workspace_file": Sample(ids=_slug, bodies=(_workspace_yaml,)),
    "workspace_file_download": Sample(ids=_slug),
    "api:config-list": Sample(bodies=(_bud_document,)),
    "api:config-check-runs": Sample(bodies=(_bud_document,), reads=False),
    "api:conversations-list": Sample(bodies=(_body(bud_id="bud"), _new_conversation)),
    "api:conversations-detail": Sample(
        ids=_pk("conversation"),
        bodies=(
            _body(title="=renamed"),
            _overrides,
            _body(bud_id="bud"),
            _model,
            _body(folder_id="folder"),
        ),
    ),
    "api:conversations-messages": Sample(
        ids=_pk("conversation"), bodies=(_body(client_id="=c", text="=hello"),)
    ),
    "api:conversations-deleted": Sample(),
    "api:conversations-seen": Sample(ids=_pk("conversation"), bodies=(lambda _: {},), reads=False),
    "api:conversations-keep": Sample(ids=_pk("conversation"), reads=False),
    "api:conversations-restore": Sample(ids=_pk("conversation"), reads=False),
    "api:conversations-erase": Sample(ids=_pk("conversation"), reads=False),
    "api:conversations-export": Sample(ids=_pk("conversation")),
    "api:conversations-share": Sample(
        ids=_pk("conversation"), bodies=(lambda _: {"audience": "workspace"},)
    ),
    "api:shared-chats-list": Sample(),
    "api:shared-chats-people": Sample(),
    "api:shared-chats-given": Sample(),
    "api:shared-chats-detail": Sample(ids=_link),
    "api:shared-chats-copy": Sample(ids=_link, bodies=(_body(bud_id="bud"),), reads=False),
    "api:conversations-servers": Sample(ids=_pk("conversation")),
    "api:conversations-tools": Sample(
        ids=_pk("conversation"),
        bodies=(
            _body(change="=add_server", server_id="server"),
            _body(change="=disable_tool", tool_id="tool"),
        ),
        reads=False,
    ),
    "api:conversations-resources": Sample(ids=_pk("conversation")),
    "api:conversations-prompts": Sample(
        ids=_pk("conversation"), bodies=(_body(prompt_id="prompt"),)
    ),
    "api:conversations-completions": Sample(
        ids=_pk("conversation"),
        bodies=(_body(kind="=prompt", id="prompt", argument="=a", value="="),),
        reads=False,
    ),
    "api:buds-resources": Sample(ids=_pk("bud")),
    "api:buds-prompts": Sample(ids=_pk("bud"), bodies=(_body(prompt_id="prompt"),)),
    "api:buds-completions": Sample(
        ids=_pk("bud"),
        bodies=(_body(kind="=prompt", id="prompt", argument="=a", value="="),),
        reads=False,
    ),
    "api:buds-servers": Sample(ids=_pk("bud")),
    "api:buds-offered": Sample(),
    "api:buds-tools": Sample(ids=_pk("bud")),
    "api:buds-versions": Sample(ids=_pk("bud")),
    "api:buds-restore": Sample(ids=_pk("bud"), bodies=(lambda _: {"number": 1},), reads=False),
    "api:buds-duplicate": Sample(ids=_pk("bud"), reads=False),
    "api:buds-export": Sample(ids=_pk("bud")),
    "api:buds-quality": Sample(ids=_pk("bud")),
    "api:buds-checks": Sample(ids=_pk("bud"), bodies=(_check,)),
    "api:buds-check-plan": Sample(ids=_pk("bud"), bodies=(_check_plan,)),
    "api:buds-check-runs": Sample(ids=_pk("bud"), bodies=(_mcp_config,)),
    "api:checks-detail": Sample(ids=_pk("bud_check"), bodies=(_check,)),
    "api:checks-from-call": Sample(bodies=(_body(call_id="call"),), reads=False),
    "api:check-runs-detail": Sample(ids=_pk("check_run")),
    "api:check-runs-cancel": Sample(ids=_pk("check_run"), reads=False),
    "api:buds-knowledge": Sample(ids=_pk("bud")),
    "api:knowledge-detail": Sample(ids=_pk("known")),
    "api:knowledge-text": Sample(ids=_pk("known")),
    "api:knowledge-content": Sample(ids=_pk("known"), gives_content=True),
    "api:buds-from-file": Sample(bodies=(_bud_yaml,), reads=False),
    "api:buds-check-file": Sample(bodies=(_bud_yaml,), reads=False),
    "api:buds-test": Sample(bodies=(_draft,), reads=False),
    "api:conversations-artifacts": Sample(ids=_pk("conversation")),
    "api:artifacts-detail": Sample(ids=_pk("artifact"), bodies=(_body(name="=renamed.html"),)),
    "api:artifacts-undelete": Sample(ids=_pk("artifact"), reads=False),
    "api:artifacts-versions": Sample(ids=_pk("artifact"), bodies=(_body(content="=new"),)),
    "api:artifacts-restore": Sample(
        ids=_pk("artifact"), bodies=(lambda _: {"version": 1},), reads=False
    ),
    "api:artifacts-content": Sample(ids=_content, gives_content=True),
    "api:artifacts-text": Sample(ids=_content, gives_content=True),
    "api:messages-detail": Sample(ids=_pk("message")),
    "api:messages-older": Sample(ids=_pk("message")),
    "api:messages-newer": Sample(ids=_pk("message")),
    "api:messages-edit": Sample(
        ids=_pk("message"), bodies=(_body(client_id="=e", text="=hello"),), reads=False
    ),
    "api:messages-show": Sample(ids=_pk("message"), reads=False),
    "api:messages-summary": Sample(
        ids=_pk("answer"), bodies=(_body(text="=changed"),), reads=False
    ),
    "api:messages-fork": Sample(ids=_pk("answer"), bodies=(_body(client_id="=f"),), reads=False),
    "api:attachments-detail": Sample(ids=_pk("attachment")),
    "api:queued-messages-detail": Sample(ids=_pk("queued"), bodies=(_body(text="=changed"),)),
    "api:queued-messages-send": Sample(ids=_pk("queued"), reads=False),
    "api:webhooks-list": Sample(bodies=(_webhook,)),
    "api:webhooks-detail": Sample(ids=_pk("webhook"), bodies=(_webhook,)),
    "api:webhooks-renew-secret": Sample(ids=_pk("webhook"), reads=False),
    "api:webhooks-test": Sample(ids=_pk("webhook"), reads=False),
    "api:webhooks-deliveries": Sample(ids=_pk("webhook")),
    "api:chat-imports-list": Sample(bodies=(_body(bud_id="bud"),)),
    "api:chat-imports-detail": Sample(ids=_pk("chat_import")),
    "api:chat-imports-remove": Sample(ids=_pk("chat_import"), reads=False),
    "api:chat-imports-restore": Sample(ids=_pk("chat_import"), reads=False),
    "api:data-copies-list": Sample(bodies=(lambda _: {"with_files": False},)),
    "api:data-copies-detail": Sample(ids=_pk("data_copy")),
    "api:data-copies-cancel": Sample(ids=_pk("data_copy"), reads=False),
    "api:data-copies-erase": Sample(ids=_pk("data_copy"), reads=False),
    "api:data-copies-part": Sample(
        ids=lambda side: {"pk": side["data_copy"].pk, "number": 1},
        gives_content=True,
        writes_on_get=_AUDIT,
    ),
    "api:folders-list": Sample(bodies=(_body(name="=plans"),)),
    "api:folders-detail": Sample(ids=_pk("folder"), bodies=(_body(name="=plans"),)),
    "api:push-devices-list": Sample(
        bodies=(
            lambda _: {
                "endpoint": "https://push.example.org/another",
                "p256dh": BROWSER_KEY,
                "auth": "A" * 22,
                "key_id": vapid_keys()[0].id,
            },
        )
    ),
    "api:push-devices-detail": Sample(ids=_pk("push_device"), reads=False),
    "api:push-devices-test": Sample(ids=_pk("push_device"), reads=False),
    "api:push-devices-key": Sample(),
    "api:reminders-list": Sample(bodies=(lambda _: {"mail_after": 15, "time_zone": "UTC"},)),
    "api:me-list": Sample(),
    "api:profile-list": Sample(bodies=(_body(name="=Ada"),)),
    "api:profile-picture": Sample(reads=False),
    "api:pins-list": Sample(
        bodies=(lambda side: {"bud_id": str(side["bud"].pk), "is_pinned": True},)
    ),
    "api:drafts-list": Sample(
        bodies=(
            lambda side: {
                "conversation_id": str(side["conversation"].pk),
                "text": "x",
                "written_at": "2026-11-22T00:00:00Z",
            },
        )
    ),
    "api:conversations-bulk": Sample(
        bodies=(
            lambda side: {"ids": [str(side["conversation"].pk)], "change": "archive"},
            lambda side: {"ids": [str(side["conversation"].pk)], "change": "erase"},
            lambda side: {
                "ids": [str(side["conversation"].pk)],
                "change": "move",
                "folder_id": str(side["folder"].pk),
            },
        ),
        reads=False,
    ),
    "api:turns-regenerate": Sample(
        ids=_pk("turn"),
        bodies=(_body(client_id="=r"), lambda side: {"client_id": "m", **_model(side)}),
        reads=False,
    ),
    "api:turns-compare": Sample(
        ids=_pk("turn"),
        bodies=(lambda side: {"client_id": "b", **_model(side)},),
        reads=False,
    ),
    "api:turns-choose": Sample(ids=_pk("turn"), reads=False),
    "api:turns-go-on": Sample(ids=_pk("turn"), reads=False),
    "api:turns-rate": Sample(ids=_pk("turn"), bodies=(_body(rating="=good"),), reads=False),
    "api:turns-events": Sample(ids=_pk("turn")),
    "api:tool-calls-resolve": Sample(
        ids=_pk("call"), bodies=(lambda _: {"resolution": "give_up"},), reads=False
    ),
    "api:turns-detail": Sample(ids=_pk("turn")),
    "api:turns-retry": Sample(ids=_pk("turn"), reads=False),
    "api:turns-stop": Sample(ids=_pk("turn"), reads=False),
    "api:turns-tool-calls": Sample(ids=_pk("turn")),
    "api:tool-calls-detail": Sample(ids=_pk("call")),
    "api:tool-calls-decide": Sample(
        ids=_pk("call"), bodies=(lambda _: {"decision": "approve"},), reads=False
    ),
    "api:input-requests-list": Sample(),
    "api:input-requests-detail": Sample(ids=_pk("input")),
    "api:input-requests-answer": Sample(
        ids=_pk("input"), bodies=(lambda _: {"action": "decline"},), reads=False
    ),
    "api:search-list": Sample(),
    "api:member-tool-permissions-list": Sample(),
    "api:member-tool-permissions-detail": Sample(ids=_pk("permission")),
    "api:tool-permissions-list": Sample(bodies=(_body(tool_id="tool"),)),
    "api:tool-permissions-detail": Sample(ids=_pk("permission")),
    "workspaces:index": Sample(writes_on_get=_SESSION),
    "workspaces:setup": _public,
    "workspaces:open_setup": Sample(
        ids=lambda _: {"token": "unknown"}, is_public=True, writes_on_get=_SESSION
    ),
    "workspaces:accept_invitation": _public,
    "workspaces:invitation": Sample(
        ids=lambda _: {"token": "unknown"}, is_public=True, writes_on_get=_SESSION
    ),
    "workspaces:profile": Sample(bodies=(_body(name="=Ada"),)),
    "workspaces:picture": Sample(reads=False),
    "workspaces:member_picture": Sample(
        ids=lambda side: {**_slug(side), "user_id": side["membership"].user_id}
    ),
    "workspaces:shortcuts": Sample(),
    "workspaces:all": Sample(),
    "workspaces:leave": Sample(ids=_slug, reads=False),
    "workspaces:appearance": Sample(bodies=(lambda _: {"theme": "dark"},)),
    "workspaces:formats": Sample(bodies=(lambda _: {"time_zone": "Asia/Tokyo", "clock": "12"},)),
    "workspaces:sessions": Sample(bodies=(_body(session="browser_session"),)),
    "workspaces:tokens": Sample(
        bodies=(lambda _: {"name": "x", "scopes": ["chat"], "expires_in": "30"},)
    ),
    "workspaces:revoke_token": Sample(ids=lambda side: {"token_id": side["token"].pk}, reads=False),
    "workspaces:open_admin": Sample(ids=_slug, reads=False),
    "audit:streams": _page,
    "audit:stream_add": Sample(
        ids=lambda side: {**_slug(side), "kind": "webhook"},
        bodies=(lambda _: {"name": "x", "target": "https://sink.example.org/", "start": "now"},),
        reads=False,
    ),
    "audit:stream": Sample(ids=_in_workspace(stream_id="stream"), reads=False),
    "audit:stream_change": Sample(
        ids=lambda side: {**_slug(side), "stream_id": side["stream"].pk, "verb": "resume"},
        reads=False,
    ),
    "audit:platform_streams": Sample(reads=False),
    "audit:platform_stream_add": Sample(ids=lambda _: {"kind": "webhook"}, reads=False),
    "audit:platform_stream": Sample(ids=lambda side: {"stream_id": side["stream"].pk}, reads=False),
    "audit:platform_stream_change": Sample(
        ids=lambda side: {"stream_id": side["stream"].pk, "verb": "resume"}, reads=False
    ),
    "audit:alerts": _page,
    "audit:alert_add": Sample(
        ids=_slug,
        bodies=(
            lambda _: {
                "name": "x",
                "condition": "timeout",
                "query": "tool:read",
                "threshold": "1",
                "window_minutes": "5",
                "least_calls": "10",
                "remind_hours": "24",
            },
        ),
        reads=False,
    ),
    "audit:alert_recommended": Sample(ids=_slug, reads=False),
    "audit:alert_rule": Sample(ids=_in_workspace(rule_id="rule"), reads=False),
    "audit:alert_change": Sample(
        ids=lambda side: {**_slug(side), "rule_id": side["rule"].pk, "verb": "on"}, reads=False
    ),
    "audit:notices": _page,
    "audit:all_notices": _page,
    "audit:notices_read": Sample(ids=_slug, reads=False),
    "audit:settings": _page,
    "audit:hold_place": Sample(ids=_slug, bodies=(_body(reason="=x"),), reads=False),
    "audit:hold_release": Sample(ids=_in_workspace(hold_id="hold"), reads=False),
    "audit:erase": Sample(
        ids=_slug,
        bodies=(lambda _: {"email": "nobody@example.org", "reason": "x"},),
        reads=False,
    ),
    "audit:entries": _page,
    "audit:export": Sample(
        ids=lambda side: {**_slug(side), "extension": "csv"}, writes_on_get=_AUDIT
    ),
    "audit:proof-export": Sample(ids=_slug, writes_on_get=_AUDIT),
    "audit:verifier": _page,
    "audit:entry": Sample(ids=_in_workspace(entry_id="entry"), writes_on_get=_AUDIT),
    "audit:call": Sample(
        ids=lambda side: {**_slug(side), "call_id": side["entry"].call_id}, writes_on_get=_AUDIT
    ),
    "audit:overview": _page,
    "audit:reports": _page,
    "audit:report-file": Sample(ids=_slug, writes_on_get=_AUDIT),
    "audit:save_view": Sample(
        ids=_slug, bodies=(_body(page="=log", name="=mine", query="=tool=read"),), reads=False
    ),
    "audit:delete_view": Sample(ids=_in_workspace(view_id="view"), reads=False),
    "audit:reviews": Sample(
        ids=_slug,
        bodies=(lambda _: {"since": "2026-01-01T00:00", "until": "2026-01-02T00:00"},),
        writes_on_get=_SESSION,
    ),
    "audit:schedules": Sample(
        ids=_slug,
        bodies=(
            lambda side: {
                "name": "weekly",
                "format": "csv",
                "cadence": "weekly",
                "delivery": "mail",
                "recipients": str(side.tenant.auditor.pk),
            },
        ),
        writes_on_get=_SESSION,
    ),
    "audit:schedule": Sample(
        ids=lambda side: {**_slug(side), "schedule_id": side["schedule"].pk, "verb": "pause"},
        reads=False,
    ),
    "audit:schedule-summary": _page,
    "audit:schedule-page": Sample(
        ids=lambda side: {**_slug(side), "schedule_id": side["schedule"].pk},
        writes_on_get=_SESSION,
    ),
    "audit:sent-file": Sample(
        ids=_in_workspace(sent_id="sent_file"),
        bodies=(_body(note="=seen"),),
        writes_on_get=_SESSION,
    ),
    "audit:send-file-again": Sample(ids=_in_workspace(sent_id="sent_file"), reads=False),
    "audit:activity": _page,
    "audit:own_entry": Sample(ids=_in_workspace(entry_id="entry")),
    # For the platform's owner alone; nobody of a workspace finds it.
    "audit:platform": Sample(reads=False, writes_on_get=_SESSION),
    "platform_state": Sample(reads=False, writes_on_get=_SESSION),
    "confirm_restore": Sample(reads=False),
    "platform_jobs": Sample(reads=False, writes_on_get=_SESSION),
    "run_job": Sample(reads=False),
    "platform_storage": Sample(reads=False, writes_on_get=_SESSION),
    "platform_versions": Sample(reads=False, writes_on_get=_SESSION),
    "chat:platform_provider": Sample(reads=False, writes_on_get=_SESSION),
    "chat:shared_providers": Sample(reads=False, writes_on_get=_SESSION),
    "chat:shared_provider_new": Sample(reads=False, writes_on_get=_SESSION),
    "chat:shared_provider": Sample(ids=_shared, reads=False, writes_on_get=_SESSION),
    "chat:shared_provider_edit": Sample(ids=_shared, reads=False, writes_on_get=_SESSION),
    "chat:shared_provider_part": Sample(
        ids=lambda side: {**_shared(side), "workspace_id": side["shared"].workspace_id},
        reads=False,
        writes_on_get=_SESSION,
    ),
    "chat:shared_provider_change": Sample(
        ids=lambda side: {**_shared(side), "verb": "delete"}, reads=False
    ),
    "api:tokens-list": Sample(bodies=(_token,)),
    # Tokens, sessions and entries are their person's alone, whatever role asks.
    "api:tokens-detail": Sample(ids=_pk("token"), reads=False),
    "api:member-tokens-list": Sample(),
    "api:member-tokens-detail": Sample(ids=_pk("token")),
    "api:sessions-list": Sample(),
    "api:sessions-detail": Sample(ids=_pk("browser_session"), reads=False),
    "api:sessions-sign-out-others": Sample(reads=False),
    "api:workspaces-list": Sample(),
    "api:activity-list": Sample(),
    "api:activity-detail": Sample(ids=_pk("entry"), reads=False),
    "api:member-shares-list": Sample(),
    "api:member-shares-detail": Sample(ids=_pk("shared_chat")),
    "api:ratings-list": Sample(),
    "api:alerts-list": Sample(),
    "api:alert-rules-recommended": Sample(reads=False),
    "api:alert-rules-preview": Sample(
        bodies=(_body(name="=x", condition="=timeout", threshold="=1", window_minutes="=5"),),
        reads=False,
    ),
    "api:notices-list": Sample(),
    "api:notices-read": Sample(bodies=(_body(notice="notice"),), reads=False),
    **{
        f"api:platform-{name}": Sample(reads=False)
        for name in (
            *("state-list", "state-confirm-restore", "servers-list"),
            *("jobs-list", "jobs-run", "storage-list", "versions-list"),
            *("programs-list", "programs-known", "audit-list", "audit-workspaces-list"),
            *("audit-entries-list", "environment-provider-list", "environment-provider-test"),
            *("environment-provider-usage", "environment-provider-list-changes"),
        )
    },
    "api:platform-workspaces-list": Sample(bodies=(_body(name="=x", slug="=x"),), reads=False),
    "api:platform-workspaces-detail": Sample(
        ids=_own_workspace, bodies=(lambda _: {"allows_public_links": True},), reads=False
    ),
    "api:platform-workspaces-suspend": Sample(
        ids=_own_workspace,
        bodies=(lambda side: {"confirmation": side.tenant.workspace.name},),
        reads=False,
    ),
    "api:platform-workspaces-resume": Sample(ids=_own_workspace, reads=False),
    "api:platform-accounts-list": Sample(
        bodies=(_body(email="=new@example.org", password="=correct horse battery"),), reads=False
    ),
    "api:platform-accounts-detail": Sample(
        ids=_member,
        bodies=(lambda _: {"is_superuser": True},),
        reads=False,
    ),
    "api:platform-accounts-picture": Sample(ids=_member, reads=False),
    "api:platform-accounts-two-steps": Sample(ids=_member, reads=False),
    "api:platform-programs-detail": Sample(
        ids=_pk("server"), bodies=(lambda _: {"is_enabled": True},), reads=False
    ),
    "api:platform-programs-accept": Sample(ids=_pk("server"), reads=False),
    "api:platform-servers-detail": Sample(ids=_pk("server"), reads=False),
    "api:platform-providers-list": Sample(
        bodies=(_body(name="=x", base_url="=https://x.example.org/v1", default_model="=m"),),
        reads=False,
    ),
    "api:platform-providers-detail": Sample(
        ids=_shared_pk, bodies=(_body(name="=renamed"),), reads=False
    ),
    "api:platform-providers-switch": Sample(
        ids=_shared_pk, bodies=(lambda _: {"is_active": False},), reads=False
    ),
    **{
        f"api:platform-providers-{name}": Sample(
            ids=_shared_pk,
            bodies=(lambda side: {"workspace": str(side.tenant.workspace.pk)},),
            reads=False,
        )
        for name in ("give", "withdraw")
    },
    **{
        f"api:platform-providers-{name}": Sample(ids=_shared_pk, reads=False)
        for name in ("test", "usage", "list-changes", "workspaces")
    },
    "api:platform-providers-part": Sample(
        ids=lambda side: {**_shared_pk(side), "workspace_id": side.tenant.workspace.pk},
        bodies=(lambda _: {"most_at_once": 1},),
        reads=False,
    ),
    "api:platform-audit-streams-list": Sample(
        bodies=(_body(name="=SIEM", kind="=otlp", target="=https://sink.example.org/"),),
        reads=False,
    ),
    "api:platform-audit-streams-detail": Sample(
        ids=_pk("stream"), bodies=(_body(name="=renamed"),), reads=False
    ),
    "api:platform-audit-streams-restart": Sample(
        ids=_pk("stream"), bodies=(_body(start="=now"),), reads=False
    ),
    **{
        f"api:platform-audit-streams-{name}": Sample(ids=_pk("stream"), reads=False)
        for name in ("test", "retry", "renew-secret")
    },
    "mcp_servers:servers": _page,
    "mcp_servers:icons": _page,
    "mcp_servers:add": Sample(
        ids=_slug,
        bodies=(
            lambda _: {
                "name": "new",
                "transport": "streamable_http",
                "url": "https://new.example.org/mcp",
            },
        ),
        reads=False,
    ),
    "mcp_servers:add_from_catalogue": Sample(
        ids=_slug, bodies=(_body(name="=new", program="server"),), reads=False
    ),
    "mcp_servers:add_personal": Sample(
        ids=_slug,
        bodies=(lambda _: {"personal-name": "new", "personal-url": "https://new.example.org/mcp"},),
        reads=False,
    ),
    "mcp_servers:rules": Sample(
        ids=_slug,
        bodies=(lambda _: {"rule": "allows_personal_servers", "is_on": "on"},),
        reads=False,
    ),
    "mcp_servers:call_rules": Sample(
        ids=_slug,
        bodies=(_body(server="=notes", tool="=add", role="=member", arguments="=text: x"),),
        reads=False,
    ),
    "mcp_servers:call_rule_new": Sample(ids=_slug, bodies=(_call_rule_form,), reads=False),
    "mcp_servers:call_rule": Sample(
        ids=_in_workspace(rule_id="call_rule"), bodies=(_call_rule_form,), reads=False
    ),
    "mcp_servers:call_rule_enabled": Sample(
        ids=_in_workspace(rule_id="call_rule"), bodies=(_body(is_on="=on"),), reads=False
    ),
    "mcp_servers:call_rule_delete": Sample(ids=_in_workspace(rule_id="call_rule"), reads=False),
    "mcp_servers:clients": Sample(
        ids=_slug, bodies=(lambda _: {"name": "new", "scope": "mcp:call", "days": "30"},)
    ),
    "mcp_endpoint": Sample(ids=_slug, reads=False),
    "mcp_servers:member_clients": _page,
    "mcp_servers:client_end": Sample(ids=_in_workspace(sign_in_id="client_sign_in"), reads=False),
    "api:mcp-clients-list": Sample(),
    # Clients are their person's alone, whatever role asks.
    "api:mcp-clients-detail": Sample(ids=_pk("client_sign_in"), reads=False),
    "api:member-mcp-clients-list": Sample(),
    "api:member-mcp-clients-detail": Sample(ids=_pk("client_sign_in")),
    # They say the same for every name.
    "mcp_about_endpoint": Sample(ids=_named, is_public=True, writes_on_get=_SESSION),
    "mcp_about_endpoint_short": Sample(ids=_named, is_public=True, writes_on_get=_SESSION),
    "mcp_about_sign_in": _public,
    # Without a client's request the page has nothing to ask.
    "mcp_authorize": Sample(reads=False, writes_on_get=_SESSION),
    "mcp_token": Sample(is_public=True, reads=False),
    "mcp_register": Sample(is_public=True, asks_no_session=True, reads=False),
    "mcp_revoke": Sample(is_public=True, reads=False),
    "mcp_servers:try": Sample(ids=_slug, reads=False),
    "mcp_servers:import": Sample(
        ids=_slug,
        bodies=(
            lambda _: {"servers": '{"mcpServers": {"new": {"url": "https://new.example.org/"}}}'},
        ),
    ),
    "mcp_servers:export": _page,
    "mcp_servers:set_global": Sample(
        # The platform's servers belong to no workspace.
        ids=lambda side: {**_slug(side), "global_id": side["server"].pk},
        reads=False,
    ),
    "mcp_servers:server": Sample(ids=_server),
    "mcp_servers:settings": Sample(ids=_server, bodies=(_body(name="=renamed"),)),
    "mcp_servers:connect": _action_on_server,
    "mcp_servers:disconnect": _action_on_server,
    "mcp_servers:use_sessions": _action_on_server,
    "mcp_servers:review": Sample(
        ids=_server, bodies=(lambda side: {"tool": [f"{side['tool'].pk} {'0' * 64}"]},)
    ),
    "mcp_servers:offers": Sample(ids=_server),
    "mcp_servers:resource_enabled": Sample(
        ids=_in_workspace(server_id="server", resource_id="resource"), reads=False
    ),
    "mcp_servers:prompt_enabled": Sample(
        ids=_in_workspace(server_id="server", prompt_id="prompt"), reads=False
    ),
    "mcp_servers:icon": Sample(ids=_server),
    "mcp_servers:trace": Sample(ids=_server),
    "mcp_servers:trace_news": Sample(ids=_server, reads=False),
    "mcp_servers:trace_download": Sample(ids=_server, writes_on_get=_AUDIT),
    "mcp_servers:trace_message": Sample(ids=_message),
    "mcp_servers:trace_body": Sample(ids=_message, reads=False),
    "mcp_servers:test": _action_on_server,
    "mcp_servers:refresh": _action_on_server,
    "mcp_servers:active": _action_on_server,
    "mcp_servers:delete": _action_on_server,
    "mcp_servers:tool_enabled": _action_on_tool,
    "mcp_servers:tool_approval": _action_on_tool,
    "mcp_servers:tool_cache": _action_on_tool,
    "mcp_servers:tool_accept": _action_on_tool,
    "mcp_servers:tool_tester": Sample(ids=_tool),
    "mcp_servers:tool_try": _action_on_tool,
    "api:hosted-servers-list": Sample(bodies=(_body_of_services,)),
    "api:hosted-servers-detail": Sample(
        ids=_pk("klavis_instance"), bodies=(lambda _: {"uses_rest": True},)
    ),
    "api:hosted-servers-others": Sample(),
    "api:hosted-servers-credential": Sample(
        ids=_pk("klavis_instance"), bodies=(_body(secret="=x"),), reads=False
    ),
    "api:hosted-removals-list": Sample(),
    "api:hosted-removals-detail": Sample(ids=_pk("klavis_removal"), reads=False),
    "api:hosted-servers-account": Sample(
        bodies=(lambda _: {"is_active": True},),
    ),
    "api:hosted-servers-test-account": Sample(reads=False),
    "api:hosted-servers-sign-in": Sample(ids=_pk("klavis_instance"), reads=False),
    "api:hosted-servers-poll": Sample(ids=_pk("klavis_instance"), reads=False),
    "mcp_servers:klavis": _page,
    "mcp_servers:klavis_save": Sample(
        ids=_slug,
        bodies=(
            lambda _: {
                "base_url": "https://klavis.example.org",
                "dialect": "current",
                "api_key": "x",
            },
        ),
        reads=False,
    ),
    "mcp_servers:klavis_test": Sample(ids=_slug, reads=False),
    "mcp_servers:klavis_remove": Sample(ids=_slug, reads=False),
    "mcp_servers:klavis_strata": Sample(ids=_slug, bodies=(_body(services="=gmail"),), reads=False),
    "mcp_servers:klavis_forget_removal": Sample(
        ids=_in_workspace(removal_id="klavis_removal"), reads=False
    ),
    "mcp_servers:klavis_signed_in": _public,
    "mcp_servers:klavis_instance": Sample(ids=_hosted),
    "mcp_servers:klavis_card": Sample(ids=_hosted),
    "mcp_servers:klavis_poll": Sample(ids=_hosted, reads=False),
    "mcp_servers:klavis_sign_in": Sample(ids=_hosted, reads=False),
    "mcp_servers:klavis_credential": Sample(ids=_hosted, bodies=(_body(secret="=x"),), reads=False),
    "mcp_servers:klavis_read_only": Sample(ids=_hosted, bodies=(_body(is_on="=on"),), reads=False),
    "mcp_servers:klavis_rest": Sample(ids=_hosted, bodies=(_body(is_on="=on"),), reads=False),
    "mcp_servers:klavis_services": Sample(
        ids=_hosted, bodies=(_body(services="=gmail"),), reads=False
    ),
    "mcp_servers:klavis_uninstall": Sample(ids=_hosted, reads=False),
    "mcp_servers:klavis_rule": Sample(
        ids=_hosted, bodies=(_body(action="=send", effect="=deny"),), reads=False
    ),
    "mcp_servers:klavis_rule_remove": Sample(
        ids=_in_workspace(instance_id="klavis_instance", rule_id="action_rule"), reads=False
    ),
    "chat:home": Sample(ids=_slug, writes_on_get=_SESSION),
    "chat:shell": Sample(ids=_slug, writes_on_get=_SESSION),
    "workspaces:join": _public,
    "workspaces:join_link": Sample(
        ids=lambda _: {"token": "unknown"}, is_public=True, writes_on_get=_SESSION
    ),
    "workspaces:make_join_link": Sample(
        ids=_slug,
        bodies=(_body(email_domain="=example.org", role="=member", days="=7", most_uses="=5"),),
    ),
    "workspaces:revoke_join_link": Sample(ids=_in_workspace(link_id="join_link"), reads=False),
    "api:join-links-list": Sample(bodies=(_body(email_domain="=example.org"),)),
    "api:join-links-detail": Sample(ids=_pk("join_link")),
    "workspaces:requests": Sample(
        ids=_slug, bodies=(_body(kind="=tool", name="=mail", reason="=work"),)
    ),
    "workspaces:request_change": Sample(
        ids=lambda side: {
            **_slug(side),
            "request_id": side["access_request"].pk,
            "verb": "grant",
        },
        bodies=(_body(note="=yes"),),
        reads=False,
    ),
    "api:list-views-list": Sample(
        bodies=(_body(list="=workspaces.membership", name="=mine", query="=role__exact=member"),)
    ),
    "api:list-views-detail": Sample(ids=_pk("list_view"), bodies=(_body(name="=other"),)),
    "api:access-requests-list": Sample(bodies=(_body(kind="=tool", name="=mail", reason="=work"),)),
    "api:access-requests-detail": Sample(ids=_pk("access_request")),
    "api:access-requests-decide": Sample(
        ids=_pk("access_request"), bodies=(lambda _: {"is_granted": True},), reads=False
    ),
    "api:members-sessions": Sample(ids=_pk("membership")),
    "api:members-sign-out": Sample(
        ids=_pk("membership"), bodies=(_body(session="browser_session"),), reads=False
    ),
    "workspaces:members": _page,
    "workspaces:member": Sample(
        ids=_in_workspace(membership_id="membership"), writes_on_get=_SESSION
    ),
    "workspaces:member_access": Sample(
        ids=_in_workspace(membership_id="membership"), writes_on_get=_SESSION
    ),
    "workspaces:member_change": Sample(
        ids=lambda side: {
            **_slug(side),
            "membership_id": side["membership"].pk,
            "verb": "suspend",
        },
        bodies=(_body(reason="=On leave"),),
        reads=False,
    ),
    "api:members-list": Sample(),
    "api:members-detail": Sample(ids=_pk("membership")),
    "api:members-role": Sample(ids=_pk("membership"), bodies=(_body(role="=member"),), reads=False),
    "api:members-access": Sample(ids=_pk("membership")),
    "api:members-suspend": Sample(
        ids=_pk("membership"), bodies=(_body(reason="=On leave"),), reads=False
    ),
    "api:members-resume": Sample(ids=_pk("membership"), reads=False),
    "api:members-make-owner": Sample(
        ids=_pk("membership"), bodies=(_body(confirmation="=x"),), reads=False
    ),
    "workspaces:invite": Sample(
        ids=_slug, bodies=(lambda _: {"people": "new@example.org", "role": "member"},)
    ),
    "workspaces:invitation_change": Sample(
        ids=lambda side: {
            **_slug(side),
            "invitation_id": side["invitation"].pk,
            "verb": "resend",
        },
        reads=False,
    ),
    "api:invitations-list": Sample(bodies=(lambda _: {"people": [{"email": "new@example.org"}]},)),
    "api:invitations-detail": Sample(ids=_pk("invitation")),
    "api:invitations-resend": Sample(ids=_pk("invitation"), reads=False),
    "chat:provider": Sample(ids=_in_workspace(provider_id="provider"), writes_on_get=_SESSION),
    "api:providers-list": Sample(
        bodies=(
            _body(
                name="=x",
                base_url="=https://models.example.org/v1",
                default_model="=m",
                fallback="provider",
            ),
        )
    ),
    "api:providers-detail": Sample(ids=_pk("provider"), bodies=(_body(default_model="=m"),)),
    "api:provider-models-list": Sample(
        bodies=(
            lambda side: {
                "provider_id": str(side["provider"].pk),
                "model": "another-model",
                "prompt_price": "1",
            },
        )
    ),
    "api:provider-models-detail": Sample(
        ids=_pk("priced"),
        bodies=(lambda side: {"provider_id": str(side["provider"].pk), "prompt_price": "2"},),
    ),
    "api:providers-rotate-key": Sample(
        ids=_pk("provider"), bodies=(_body(api_key="=x"),), reads=False
    ),
    "api:providers-list-changes": Sample(ids=_pk("provider")),
    "api:providers-check": Sample(ids=_pk("provider"), reads=False),
    "chat:buds": _page,
    "chat:reminders": Sample(
        ids=_slug,
        bodies=(lambda _: {"mail_after": "15", "answers_after": "0", "time_zone": "UTC"},),
        writes_on_get=_SESSION,
    ),
    "chat:reminder_devices": Sample(
        ids=_slug,
        bodies=(lambda side: {"action": "remove", "device": str(side["push_device"].pk)},),
        reads=False,
    ),
    "chat:permissions": Sample(
        ids=_slug,
        bodies=(lambda side: {"permission": str(side["permission"].pk)},),
        writes_on_get=_SESSION,
    ),
    "chat:shared_chats": Sample(
        ids=_slug,
        bodies=(lambda side: {"shared": str(side["shared_chat"].pk)},),
        writes_on_get=_SESSION,
    ),
    "chat:shared_chat": Sample(ids=_link, writes_on_get=_SESSION),
    "chat:shared_chat_copy": Sample(
        ids=_link, bodies=(lambda side: {"bud": str(side["bud"].pk)},), reads=False
    ),
    "chat:shared_file": Sample(ids=_link_file, gives_content=True),
    # The world's file is no picture.
    "chat:shared_picture": Sample(ids=_link_file, reads=False),
    "chat:shared_diagrams": Sample(ids=_link, gives_content=True),
    "chat:imports": Sample(
        ids=_slug,
        bodies=(lambda side: {"bud_id": str(side["bud"].pk)},),
        writes_on_get=_SESSION,
    ),
    "chat:import_change": Sample(
        ids=lambda side: {**_slug(side), "import_id": side["chat_import"].pk, "verb": "remove"},
        reads=False,
    ),
    "chat:data_copies": Sample(ids=_slug, bodies=(lambda side: {},), writes_on_get=_SESSION),
    "chat:data_copy_part": Sample(
        ids=lambda side: {**_slug(side), "copy_id": side["data_copy"].pk, "number": 1},
        gives_content=True,
        writes_on_get=_AUDIT,
    ),
    "chat:data_copy_change": Sample(
        ids=lambda side: {**_slug(side), "copy_id": side["data_copy"].pk, "verb": "erase"},
        reads=False,
    ),
    "chat:usage": Sample(ids=_slug, writes_on_get=_SESSION),
    "chat:spending": Sample(
        ids=_slug,
        bodies=(_body(tokens="=1000", warn_percent="=80", time_zone="=UTC"),),
        writes_on_get=_SESSION,
    ),
    "chat:webhooks": Sample(ids=_slug, writes_on_get=_SESSION),
    "chat:webhook_add": Sample(
        ids=_slug,
        bodies=(lambda _: {"url": "https://sink.example.org/", "events": "turn.finished"},),
        reads=False,
    ),
    "chat:webhook": Sample(ids=_in_workspace(webhook_id="webhook"), writes_on_get=_SESSION),
    "chat:webhook_change": Sample(
        ids=lambda side: {**_slug(side), "webhook_id": side["webhook"].pk, "verb": "on"},
        reads=False,
    ),
    "chat:member_spending": Sample(
        ids=_in_workspace(membership_id="membership"),
        bodies=(_body(which="=own", tokens="=1000"),),
        writes_on_get=_SESSION,
    ),
    "chat:bud_new": Sample(ids=_slug, bodies=(_bud_form,), writes_on_get=_SESSION),
    "chat:bud_test": Sample(ids=_slug, bodies=(_bud_form,), reads=False),
    "chat:bud_tools": Sample(ids=_slug, writes_on_get=_SESSION),
    "chat:bud_import": Sample(
        ids=_slug, bodies=(lambda side: {"text": _bud_yaml(side)["yaml"]},), writes_on_get=_SESSION
    ),
    "chat:bud": Sample(
        ids=_in_workspace(bud_id="bud"), bodies=(_bud_form,), writes_on_get=_SESSION
    ),
    "chat:bud_versions": Sample(ids=_in_workspace(bud_id="bud"), writes_on_get=_SESSION),
    "chat:bud_restore": Sample(
        ids=lambda side: {**_slug(side), "bud_id": side["bud"].pk, "number": 1}, reads=False
    ),
    "chat:bud_duplicate": Sample(ids=_in_workspace(bud_id="bud"), reads=False),
    "chat:bud_file": Sample(ids=_in_workspace(bud_id="bud"), writes_on_get=_SESSION),
    "chat:knowledge": Sample(
        ids=_in_workspace(file_id="known"), writes_on_get=_SESSION, gives_content=True
    ),
    "chat:bud_keep_call": Sample(ids=_in_workspace(call_id="call"), reads=False),
    "chat:bud_check": Sample(ids=_in_workspace(bud_id="bud"), bodies=(_bud_form,), reads=False),
    "chat:bud_quality": Sample(ids=_in_workspace(bud_id="bud"), writes_on_get=_SESSION),
    "chat:turn": Sample(ids=_in_workspace(turn_id="turn"), writes_on_get=_AUDIT),
    "chat:conversation": Sample(
        ids=_in_workspace(conversation_id="conversation"), writes_on_get=_SESSION
    ),
    "chat:print": Sample(ids=_in_workspace(conversation_id="conversation"), writes_on_get=_SESSION),
    "chat:waiting": Sample(ids=_slug, writes_on_get=_SESSION),
    "chat:diagrams": Sample(ids=_slug, writes_on_get=_SESSION, gives_content=True),
    "chat:artifact": Sample(ids=_file, writes_on_get=_SESSION, gives_content=True),
    "chat:artifact_preview": Sample(ids=_file, writes_on_get=_SESSION, gives_content=True),
}


def route_names() -> list[str]:
    """Every route but the admin's, which has its own walker, by namespace and name."""
    return sorted(set(_names(get_resolver().url_patterns, "")))


def _names(patterns: list[Any], namespace: str) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            if pattern.namespace != "admin":
                yield from _names(pattern.url_patterns, inner)
        elif isinstance(pattern, URLPattern):
            yield f"{namespace}{pattern.name or pattern.pattern}"


def address(name: str, sample: Sample, side: Side) -> str:
    """The route's address with the side's ids."""
    return reverse(name, kwargs=dict(sample.ids(side)))
