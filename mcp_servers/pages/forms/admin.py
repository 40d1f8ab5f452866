"""The admin's form of a server."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import LogLevel, McpServer, SamplingPolicy, ServerScope, StdioProgram
from mcp_servers.models.server_credentials import OAUTH_TYPES, AccountUse, AuthType
from mcp_servers.pages.forms.add import AddServerForm
from mcp_servers.pages.forms.common import (
    KEPT_SECRET_HELP,
    NAME_LABEL,
    SECRET_HELP,
    SECRET_LABEL,
    add_domain_error,
    read_auth,
    read_lines,
    read_roots,
    written_roots,
)
from mcp_servers.pages.forms.limits import limit_fields, limit_help, read_limits, written_limits
from mcp_servers.pages.forms.settings import SettingsForm
from mcp_servers.registry.services import ServerDraft
from workspaces.errors import DomainError, InvalidInput
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.pages.secret_fields import AsksForSecretsAgain


def _limit(name: str, field: forms.Field) -> forms.Field:
    """A field of a limit as the admin shows it: its unit beside its help; it may be left empty."""
    field.required = False
    field.help_text = limit_help(name)
    field.widget = UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"})
    return field


_OF_PAGE: Final = SettingsForm.base_fields
_AS_ON_PAGE: Final = (
    *("protocol", "trusts_annotations", "allows_new_tools", "answers_elicitation"),
    *("uses_instructions", "sampling_daily_tokens", "sampling_model", "log_level"),
)
"""What is called, and explained, as on the product's own page of the server."""

_HELP_OF_NEW: Final = {
    "auth_secret": SECRET_HELP,
    "headers": AddServerForm.base_fields["headers"].help_text,
    "env": _("One NAME=value on each line. Stored encrypted, and never shown again."),
}

LimitFields: Any = type(
    "LimitFields",
    (forms.Form,),
    {name: _limit(name, field) for name, field in limit_fields().items()},
)


class ServerAdminForm(AsksForSecretsAgain, LimitFields, forms.ModelForm):
    """The admin's form; secrets can be set and cleared, and are never shown."""

    parameters = forms.CharField(
        label=_("Parameters of the program"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "One name = value on each line, as the program's entry in the catalogue names them."
        ),
    )
    roots = forms.CharField(
        label=_("Folders it may work in"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=SettingsForm.base_fields["roots"].help_text,
    )

    headers = forms.CharField(
        label=_("Request headers"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "One name: value on each line; replaces all headers. Leave empty to keep the current ones."
            " Stored encrypted, and never shown again."
        ),
    )
    env = forms.CharField(
        label=_("Environment"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_(
            "One NAME=value on each line; replaces all. Leave empty to keep the current ones."
            " Stored encrypted, and never shown again."
        ),
    )
    auth_name = forms.CharField(
        label=NAME_LABEL,
        max_length=MAX_URL_LENGTH,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=AddServerForm.base_fields["auth_name"].help_text,
    )
    auth_secret = forms.CharField(
        label=SECRET_LABEL,
        max_length=8000,
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text=KEPT_SECRET_HELP,
    )
    clears_secrets = forms.BooleanField(
        label=_("Delete all stored headers, variables and credentials"),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    class Meta:
        model = McpServer
        fields: ClassVar[list[str]] = [
            *("name", "transport", "url", "program", "protocol", "auth_type"),
            *("account_use", "oauth_scope"),
            *("is_active", "trusts_annotations", "allows_new_tools"),
            *("answers_elicitation", "uses_instructions", "sampling", "sampling_daily_tokens"),
            *("sampling_model", "log_level"),
        ]
        labels: ClassVar[Any] = {name: _OF_PAGE[name].label for name in _AS_ON_PAGE}
        help_texts: ClassVar[Any] = {
            **{name: _OF_PAGE[name].help_text for name in _AS_ON_PAGE},
            "url": _("Such as https://mcp.example.org/mcp."),
            "sampling_daily_tokens": _(
                "What its requests to the model may use on one day (UTC), in tokens, such as 50000."
            ),
            "oauth_scope": _(
                "What is asked for when somebody signs in, such as “read write”. Leave empty for what the server says it"
                " needs."
            ),
        }

    workspace_id: Any = None
    """Set by the admin class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        server: McpServer | None = kwargs.get("instance")
        if server is not None:
            kwargs["initial"] = {
                **written_limits(server.config),
                "roots": written_roots(server.roots),
                "parameters": "\n".join(
                    f"{name} = {value}" for name, value in server.parameters.items()
                ),
                **(kwargs.get("initial") or {}),
            }
        super().__init__(*args, **kwargs)
        if server is None:
            # Nothing is stored yet that an empty field could keep.
            for name, text in _HELP_OF_NEW.items():
                self.fields[name].help_text = text
        if "account_use" in self.fields:  # not on the page of somebody's own server
            self.fields["account_use"].required = False
        if server is not None and server.program is not None and "program" in self.fields:
            # The one that it runs stays chosen, also where the catalogue offers it no more.
            programs: Any = self.fields["program"]
            programs.queryset |= StdioProgram.objects.filter(pk=server.program.pk)

    def _post_clean(self) -> None:
        # The service puts the values into the row, and checks them; see clean().
        pass

    def clean(self) -> dict[str, Any]:
        """Have the service try the values, so that what it refuses shows on the form."""
        from mcp_servers.registry.services import check_draft

        values = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                server = self.instance if not self.instance._state.adding else None
                check_draft(workspace_id=self.workspace_id, server=server, draft=self.draft())
            except DomainError as error:
                add_domain_error(self, error)
            except ValidationError as error:
                self.add_error(None, error)
        return values

    def draft(self) -> ServerDraft:
        """What the form says.

        Raises:
            InvalidInput: headers or environment cannot be read.
        """
        values = self.cleaned_data
        is_stdio = values["transport"] == transports.STDIO
        auth = None
        is_oauth = values["auth_type"] in OAUTH_TYPES
        if values.get("auth_secret") or (is_oauth and values["auth_name"]):
            auth = read_auth(values["auth_type"], values["auth_name"], values["auth_secret"])
        clears = values["clears_secrets"]
        headers = (
            read_lines(values["headers"], separator=":", field="headers")
            if values["headers"]
            else None
        )
        env = read_lines(values["env"], separator="=", field="env") if values["env"] else None
        is_global = self.instance.scope == ServerScope.GLOBAL
        return ServerDraft(
            name=values["name"],
            # Where a server of the platform is, its file says.
            transport=None if is_global else values["transport"],
            protocol=None if is_global else Protocol(values["protocol"]),
            url=values["url"],
            program=values["program"],
            parameters=self._parameters(values["parameters"]) if is_stdio else None,
            headers=headers if headers is not None or not clears else {},
            env=env if env is not None or not clears else {},
            auth_type=AuthType(values["auth_type"]),
            auth=auth if auth is not None or not clears else {},
            account_use=AccountUse(values["account_use"]) if values["account_use"] else None,
            oauth_scope=values["oauth_scope"],
            connection_config=read_limits(values),
            is_active=values["is_active"],
            trusts_annotations=values["trusts_annotations"],
            allows_new_tools=values["allows_new_tools"],
            answers_elicitation=values["answers_elicitation"],
            uses_instructions=values["uses_instructions"],
            sampling=SamplingPolicy(values["sampling"]),
            sampling_daily_tokens=values["sampling_daily_tokens"],
            sampling_model=values["sampling_model"],
            roots=read_roots(values["roots"]),
            log_level=LogLevel(values["log_level"]),
        )

    @staticmethod
    def _parameters(text: str) -> dict[str, str]:
        values = {}
        for line in filter(str.strip, text.splitlines()):
            name, found, value = line.partition("=")
            if not found:
                raise InvalidInput(fields={"parameters": [_("Write name = value on each line.")]})
            values[name.strip()] = value.strip()
        return values
