"""Forms of the servers page and of the admin. They read input; the services check it."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from mcp_servers.models import McpServer, StdioProgram, Transport
from mcp_servers.models.servers import MAX_NAME_LENGTH, AuthType
from mcp_servers.outbound import MAX_URL_LENGTH
from mcp_servers.services import ServerDraft
from mcp_servers.values import Protocol
from workspaces.errors import DomainError, InvalidInput

_SECRET_HELP = "Stored encrypted, and never shown again."  # noqa: S105  a help text


def read_lines(text: str, *, separator: str, field: str) -> dict[str, str]:
    """Names and values from lines such as `X-Key: value`.

    Raises:
        InvalidInput: a line has no separator, or a name comes twice.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, found, value = line.partition(separator)
        if not found or name.strip() in values:
            raise InvalidInput(
                fields={field: [f"Write one name{separator} value on each line, each name once."]}
            )
        values[name.strip()] = value.strip()
    return values


def read_auth(auth_type: str, name: str, secret: str) -> dict[str, str]:
    """The two inputs of the form as the credentials that this kind of authentication takes."""
    if auth_type == AuthType.BEARER:
        return {"token": secret}
    if auth_type == AuthType.API_KEY:
        return {"header": name, "value": secret}
    if auth_type == AuthType.BASIC:
        return {"username": name, "password": secret}
    return {}


def add_domain_error(form: forms.BaseForm, error: DomainError) -> None:
    """Show a service's refusal where it belongs on the form."""
    fields = error.fields if isinstance(error, InvalidInput) else {}
    if not fields:
        form.add_error(None, error.message)
    for name, texts in fields.items():
        known = {"auth": "auth_secret", "connection_config": "connection_config"}.get(
            name, name.partition(".")[0]
        )
        form.add_error(known if known in form.fields else None, texts)


class AddServerForm(forms.Form):
    """A server by its address."""

    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, help_text="Shown to people, and put before its tools' names."
    )
    url = forms.CharField(
        label="URL",
        max_length=MAX_URL_LENGTH,
        widget=forms.URLInput(attrs={"placeholder": "https://example.com/mcp"}),
        help_text="The Streamable HTTP endpoint.",
    )
    auth_type = forms.ChoiceField(
        label="Authentication", choices=AuthType.choices, initial=AuthType.NONE
    )
    auth_name = forms.CharField(
        label="Header or user name",
        max_length=200,
        required=False,
        help_text="For an API key: the header, such as X-API-Key. For a password: the user name.",
    )
    auth_secret = forms.CharField(
        label="Token, key or password",
        max_length=8000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_SECRET_HELP,
    )
    headers = forms.CharField(
        label="Further headers",
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "placeholder": "X-Team: garden", "spellcheck": "false"}
        ),
        help_text=f"One name: value on each line. {_SECRET_HELP}",
    )
    protocol = forms.ChoiceField(
        choices=[
            (Protocol.AUTO.value, "Automatic"),
            (Protocol.LEGACY.value, "With sessions (until 2025-11-25)"),
            (Protocol.MODERN.value, "Stateless (2026-07-28)"),
        ],
        initial=Protocol.AUTO.value,
    )
    trusts_annotations = forms.BooleanField(
        label="Trust what this server says about its tools",
        required=False,
        help_text="Then tools that it calls read-only run without asking.",
    )

    def draft(self) -> ServerDraft:
        """What the form says.

        Raises:
            InvalidInput: the headers cannot be read.
        """
        values = self.cleaned_data
        return ServerDraft(
            name=values["name"],
            transport=Transport.STREAMABLE_HTTP,
            url=values["url"],
            auth_type=AuthType(values["auth_type"]),
            auth=read_auth(values["auth_type"], values["auth_name"], values["auth_secret"]),
            headers=read_lines(values["headers"], separator=":", field="headers"),
            protocol=Protocol(values["protocol"]),
            trusts_annotations=values["trusts_annotations"],
        )


class CatalogueForm(forms.Form):
    """A program from the platform's catalogue, with the parameters of every program on offer."""

    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, help_text="Shown to people, and put before its tools' names."
    )
    program = forms.ModelChoiceField(queryset=StdioProgram.objects.none(), to_field_name="slug")
    trusts_annotations = forms.BooleanField(
        label="Trust what this program says about its tools",
        required=False,
        help_text="Then tools that it calls read-only run without asking.",
    )
    prefix = "catalogue"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.programs = list(StdioProgram.objects.filter(is_enabled=True))
        self.fields["program"].queryset = StdioProgram.objects.filter(is_enabled=True)  # type: ignore[attr-defined]
        self._parameters: dict[str, list[tuple[str, str]]] = {}
        self._env: dict[str, list[tuple[str, str]]] = {}
        for program in self.programs:
            self._add_fields(program)

    def _add_fields(self, program: StdioProgram) -> None:
        for parameter in program.typed_parameters():
            name = f"{program.slug}-{parameter.name}"
            label = f"{program.title}: {parameter.title}"
            if parameter.choices:
                self.fields[name] = forms.ChoiceField(
                    label=label,
                    choices=[(choice, choice) for choice in parameter.choices],
                    initial=parameter.default,
                    required=False,
                    help_text=parameter.help,
                )
            else:
                self.fields[name] = forms.CharField(
                    label=label,
                    initial=parameter.default,
                    required=False,
                    help_text=parameter.help,
                    max_length=1000,
                )
            self._parameters.setdefault(program.slug, []).append((parameter.name, name))
        for variable in program.env_names:
            name = f"{program.slug}-env-{variable}"
            self.fields[name] = forms.CharField(
                label=f"{program.title}: {variable}",
                required=False,
                max_length=8000,
                widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
                help_text=_SECRET_HELP,
            )
            self._env.setdefault(program.slug, []).append((variable, name))

    def draft(self) -> ServerDraft:
        """What the form says."""
        values = self.cleaned_data
        program: StdioProgram = values["program"]
        parameters = {
            name: values.get(field, "") for name, field in self._parameters.get(program.slug, [])
        }
        env = {
            name: values[field]
            for name, field in self._env.get(program.slug, [])
            if values.get(field)
        }
        return ServerDraft(
            name=values["name"],
            transport=Transport.STDIO,
            program=program,
            parameters={name: value for name, value in parameters.items() if value},
            env=env or None,
            trusts_annotations=values["trusts_annotations"],
        )


class ServerAdminForm(forms.ModelForm):
    """The admin's form; secrets can be set and cleared, and are never shown."""

    headers = forms.CharField(
        label="Request headers",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=f"One name: value on each line; replaces all headers. Empty: they stay as they are. {_SECRET_HELP}",
    )
    env = forms.CharField(
        label="Environment",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=f"One NAME=value on each line; replaces all. Empty: they stay as they are. {_SECRET_HELP}",
    )
    auth_name = forms.CharField(
        label="Header or user name",
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=AddServerForm.base_fields["auth_name"].help_text,
    )
    auth_secret = forms.CharField(
        label="Token, key or password",
        max_length=8000,
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text=f"Empty: it stays as it is. {_SECRET_HELP}",
    )
    clears_secrets = forms.BooleanField(
        label="Forget all stored headers, variables and credentials",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    class Meta:
        model = McpServer
        fields: ClassVar[list[str]] = [
            *("name", "transport", "url", "program", "parameters", "protocol", "auth_type"),
            *("connection_config", "is_active", "trusts_annotations", "allows_new_tools"),
        ]

    workspace_id: Any = None
    """Set by the admin class."""

    def _post_clean(self) -> None:
        # The service puts the values into the row, and checks them; see clean().
        pass

    def clean(self) -> dict[str, Any]:
        """Have the service try the values, so that what it refuses shows on the form."""
        from mcp_servers.services import check_draft

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
        is_stdio = values["transport"] == Transport.STDIO
        auth = None
        if values.get("auth_secret"):
            auth = read_auth(values["auth_type"], values["auth_name"], values["auth_secret"])
        clears = values["clears_secrets"]
        headers = (
            read_lines(values["headers"], separator=":", field="headers")
            if values["headers"]
            else None
        )
        env = read_lines(values["env"], separator="=", field="env") if values["env"] else None
        return ServerDraft(
            name=values["name"],
            transport=Transport(values["transport"]),
            protocol=Protocol(values["protocol"]),
            url=values["url"],
            program=values["program"],
            parameters=(values["parameters"] or {}) if is_stdio else None,
            headers=headers if headers is not None or not clears else {},
            env=env if env is not None or not clears else {},
            auth_type=AuthType(values["auth_type"]),
            auth=auth if auth is not None or not clears else {},
            connection_config=values["connection_config"] or {},
            is_active=values["is_active"],
            trusts_annotations=values["trusts_annotations"],
            allows_new_tools=values["allows_new_tools"],
        )
