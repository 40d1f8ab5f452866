"""The form of one server's settings: what of it applies to that server, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from django import forms
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import LogLevel, McpServer, SamplingPolicy, ServerScope
from mcp_servers.models.server_credentials import OAUTH_TYPES, AccountUse, AuthType
from mcp_servers.oauth.registered_client import entered_client
from mcp_servers.pages.forms.common import (
    KEPT_SECRET_HELP,
    ServerFields,
    read_auth,
    read_lines,
    read_roots,
    written_roots,
)
from mcp_servers.pages.forms.limits import LIMITS, limit_fields, read_limits, written_limits
from mcp_servers.pages.forms.programs import ProgramFields
from mcp_servers.pages.forms.sections import FormSection, ShownSection
from mcp_servers.registry.model_choices import providers_of
from mcp_servers.registry.services import ServerDraft
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.pages.numbers import WholeNumberField
from workspaces.pages.seen_values import NoticesOthers
from workspaces.secrets import SecretUnreadable

_TARGET: Final = (
    "transport",
    "url",
    "protocol",
    "auth_type",
    "auth_name",
    "auth_secret",
    "account_use",
    "oauth_scope",
    "headers",
)
_NOT_PERSONAL: Final = (
    *("trusts_annotations", "sampling", "sampling_daily_tokens"),
    *("sampling_provider_id", "sampling_model"),
)
_OF_SHARED: Final = "account_use"


class SettingsForm(NoticesOthers, ServerFields, ProgramFields):
    """Settings of one server."""

    SECTIONS: ClassVar = (
        FormSection(
            title=_("Server"),
            names=(
                *("name", "url", "auth_type", "auth_name", "auth_secret"),
                *("account_use", "oauth_scope"),
            ),
        ),
        FormSection(title=_("Where it is used"), names=("is_used_everywhere",)),
        FormSection(
            title=_("What it may do"),
            names=(
                *("trusts_annotations", "allows_new_tools", "answers_elicitation"),
                "uses_instructions",
            ),
        ),
        FormSection(
            title=_("Requests to the model"),
            help=_(
                "A server may ask the workspace's model for text. People are asked first, unless you choose otherwise."
            ),
            names=(
                *("sampling", "sampling_daily_tokens", "sampling_provider_id", "sampling_model"),
            ),
            is_folded=True,
        ),
        FormSection(
            title=_("Limits"),
            help=_(
                "How long calls may take, and how many may run. What is set here suits most servers."
            ),
            names=tuple(LIMITS),
            is_folded=True,
        ),
        FormSection(
            title=_("Advanced"),
            names=("transport", "protocol", "headers", "roots", "log_level"),
            is_folded=True,
        ),
    )

    transport = forms.ChoiceField(
        label=_("Transport"),
        choices=transports.remote_choices,
        help_text=lazy(transports.automatic_help, str)(),
    )
    url = forms.CharField(
        label=_("URL"),
        max_length=MAX_URL_LENGTH,
        help_text=_(
            "A different address removes the stored credentials and ends everybody's sign-in. Enter the credentials again if you need them."
        ),
    )
    auth_type = forms.ChoiceField(
        label=_("Authentication"),
        choices=AuthType.choices,
        help_text=_("Changing the kind of sign-in or the client ID ends everybody's sign-in."),
    )
    headers = forms.CharField(
        label=_("Further headers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_(
            "One name: value on each line; replaces all. Leave empty to keep the current ones."
            " Stored encrypted, and never shown again."
        ),
    )
    is_used_everywhere = forms.BooleanField(
        label=_("Use in every bud that takes all tools"),
        required=False,
        help_text=_("Otherwise only buds and chats that name this server use it."),
    )
    allows_new_tools = forms.BooleanField(
        label=_("Use new tools right away"),
        required=False,
        help_text=_(
            "New tools work right away. Tools with hidden characters are still held for review."
        ),
    )
    answers_elicitation = forms.BooleanField(
        label=_("May ask people questions while a tool runs"), required=False
    )
    uses_instructions = forms.BooleanField(
        label=_("Show its instructions to the model"),
        required=False,
        help_text=_("The model sees them marked as the server's own words."),
    )
    sampling = forms.ChoiceField(label=_("May ask the model"), choices=SamplingPolicy.choices)
    sampling_daily_tokens = WholeNumberField(
        label=_("Tokens per day"),
        min_value=0,
        help_text=_("The limit for its requests to the model."),
    )
    sampling_provider_id = forms.TypedChoiceField(
        label=_("Model provider"), required=False, coerce=str, empty_value=""
    )
    sampling_model = forms.CharField(
        label=_("Model"),
        max_length=200,
        required=False,
        help_text=_("Leave empty to use the provider's default."),
    )
    log_level = forms.ChoiceField(
        label=_("Keep its log messages from"), choices=LogLevel.choices, required=False
    )
    roots = forms.CharField(
        label=_("Folders it may work in"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "spellcheck": "false", "placeholder": "Reports = file:///srv/reports"}
        ),
        help_text=_("One “name = file:///…” per line. A program without any gets its own folder."),
    )

    def __init__(self, *args: Any, server: McpServer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server = server
        self.fields["auth_secret"].help_text = KEPT_SECRET_HELP
        self.fields.update(limit_fields())
        providers = [(str(pk), name) for pk, name in providers_of(server.workspace_id)]
        self.fields["sampling_provider_id"].choices = [  # type: ignore[attr-defined]
            ("", _("That of the bud")),
            *providers,
        ]
        if server.scope == ServerScope.GLOBAL:
            self._leave_out("name", *_TARGET)
        elif server.transport == transports.STDIO or server.hosted_by:
            self._leave_out(*_TARGET)
            if server.program is not None:
                self.add_program_fields(server.program, values=server.parameters)
        if server.owner_id is not None:
            everywhere = self.fields["is_used_everywhere"]
            everywhere.label = _("Use in all my chats")
            everywhere.help_text = _("Otherwise only chats that you add it to use it.")
            self._leave_out(*_NOT_PERSONAL)
            self.fields.pop(_OF_SHARED, None)

    def sections(self) -> list[ShownSection]:
        """The form's sections; of a program, its parameters stand beside its name."""
        first, *others = self.SECTIONS
        names = (*first.names, *self.program_names)
        return self.shown((replace(first, names=names), *others))

    @staticmethod
    def values_of(server: McpServer) -> dict[str, Any]:
        """What the form shows of a server; nothing secret."""
        plain = (
            *("name", "transport", "url", "protocol", "auth_type", "trusts_annotations"),
            *("allows_new_tools", "answers_elicitation", "uses_instructions", "sampling"),
            *("sampling_daily_tokens", "sampling_model", "log_level"),
            *("account_use", "oauth_scope", "is_used_everywhere"),
        )
        return {
            **{name: getattr(server, name) for name in plain},
            "sampling_provider_id": str(server.sampling_provider_id or ""),
            "auth_name": _client_id(server),
            "roots": written_roots(server.roots),
            **written_limits(server.config),
        }

    def draft(self) -> ServerDraft:
        """What the form says; fields that do not apply to the server stay as they are.

        Raises:
            InvalidInput: headers or folders cannot be read.
        """
        values = self.cleaned_data
        provider = values.get("sampling_provider_id")
        has_target = "url" in self.fields
        return ServerDraft(
            name=values.get("name"),
            transport=values["transport"] if has_target else None,
            url=values.get("url"),
            protocol=Protocol(values["protocol"]) if has_target else None,
            auth_type=AuthType(values["auth_type"]) if has_target else None,
            auth=self._auth(values),
            account_use=AccountUse(values["account_use"]) if values.get("account_use") else None,
            oauth_scope=values.get("oauth_scope"),
            headers=self._headers(values),
            is_used_everywhere=values["is_used_everywhere"],
            trusts_annotations=values.get("trusts_annotations"),
            allows_new_tools=values["allows_new_tools"],
            answers_elicitation=values["answers_elicitation"],
            uses_instructions=values["uses_instructions"],
            sampling=SamplingPolicy(values["sampling"]) if "sampling" in values else None,
            sampling_daily_tokens=values.get("sampling_daily_tokens"),
            sampling_provider_id=provider or None,
            clears_sampling_provider=provider == "",
            sampling_model=values.get("sampling_model"),
            log_level=LogLevel(values["log_level"]),
            roots=read_roots(values["roots"]),
            connection_config=read_limits(values),
            **(self.program_values() if self.program_names else {}),
        )

    def _leave_out(self, *names: str) -> None:
        for name in names:
            del self.fields[name]

    def _auth(self, values: Mapping[str, Any]) -> dict[str, str] | None:
        if "auth_type" not in values:
            return None
        if values["auth_type"] in OAUTH_TYPES:
            return self._client(values)
        if not values.get("auth_secret"):
            return None
        return read_auth(values["auth_type"], values["auth_name"], values["auth_secret"])

    def _client(self, values: Mapping[str, Any]) -> dict[str, str] | None:
        """The client of the form; None while it is the stored one. Another ID does not keep the old one's secret."""
        name, secret = values["auth_name"].strip(), values["auth_secret"]
        stored = _client_id(self.server) if values["auth_type"] == self.server.auth_type else ""
        if name == stored and not secret:
            return None
        return read_auth(values["auth_type"], name, secret)

    @staticmethod
    def _headers(values: Mapping[str, Any]) -> dict[str, str] | None:
        if not values.get("headers"):
            return None
        return read_lines(values["headers"], separator=":", field="headers")


def _client_id(server: McpServer) -> str:
    """The client's ID, which is no secret."""
    if server.auth_type not in OAUTH_TYPES or not server.auth_config:
        return ""
    try:
        return entered_client(server, "showing the client's id").get("client_id", "")
    except SecretUnreadable:
        return ""  # it has to be entered again, and here is where
