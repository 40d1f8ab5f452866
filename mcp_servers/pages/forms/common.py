"""What the forms share: reading lines and credentials, and showing what a service refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, ClassVar, Final
from uuid import UUID

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.values import Protocol
from mcp_servers.models.server_credentials import OAUTH_TYPES, AccountUse, AuthType
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.pages.forms.buds import BudsToChoose, buds_by_name
from mcp_servers.pages.forms.sections import FormSection, SectionedForm
from mcp_servers.registry.bud_choices import WhereUsed
from mcp_servers.registry.services.drafts import MAX_SCOPE_LENGTH
from workspaces.errors import DomainError, InvalidInput
from workspaces.models import Workspace
from workspaces.outbound import MAX_URL_LENGTH

SECRET_HELP: Final = _("Stored encrypted, and never shown again.")
KEPT_SECRET_HELP: Final = _(
    "Leave empty to keep the current one. Stored encrypted, and never shown again."
)
NAME_LABEL: Final = _("Header, user name or client ID")
SECRET_LABEL: Final = _("Token, key, password or client secret")


class ServerUse(StrEnum):
    """Where a server of the workspace is used once it is added."""

    EVERY_BUD = "every_bud"
    CHOSEN_BUDS = "chosen_buds"
    ON_REQUEST = "on_request"


USE_CHOICES: Final = [
    (ServerUse.EVERY_BUD.value, _("In every bud that takes all tools")),
    (ServerUse.CHOSEN_BUDS.value, _("In the buds chosen below")),
    (ServerUse.ON_REQUEST.value, _("Only in chats where somebody adds it")),
]


USE_SECTION: Final = FormSection(
    title=_("Where it is used"), names=("use", "bud_ids", "is_used_everywhere")
)
TRUST_SECTION: Final = FormSection(title=_("What it may do"), names=("trusts_annotations",))


class ServerFields(SectionedForm):
    """What a server with an address is asked for when it is added, and again in its settings."""

    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_LENGTH,
        help_text=_("People see this name, and it is part of the tools' names."),
    )
    auth_name = forms.CharField(
        label=NAME_LABEL,
        max_length=MAX_URL_LENGTH,
        required=False,
        help_text=_(
            "For an API key: the header, such as X-API-Key. For a password: the user name."
            " For sign-in: only if you registered a client at the issuer yourself."
        ),
    )
    auth_secret = forms.CharField(
        label=SECRET_LABEL,
        max_length=8000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=SECRET_HELP,
    )
    account_use = forms.ChoiceField(
        label=_("Whose account"),
        choices=AccountUse.choices,
        initial=AccountUse.USER,
        required=False,
        help_text=_(
            "With one account for everybody, an administrator signs in once, and whoever uses this server here acts as it."
        ),
    )
    oauth_scope = forms.CharField(
        label=_("Scopes"),
        max_length=MAX_SCOPE_LENGTH,
        required=False,
        help_text=_("Asked for at the sign-in. Empty: what the server says it needs."),
    )
    protocol = forms.ChoiceField(
        label=_("Protocol"),
        choices=[
            (Protocol.AUTO.value, _("Automatic: Trellis asks the server")),
            (Protocol.LEGACY.value, _("With sessions: servers up to revision 2025-11-25")),
            (Protocol.MODERN.value, _("Without sessions: servers from revision 2026-07-28")),
        ],
        initial=Protocol.AUTO.value,
        help_text=_("The revision of MCP. Choose one only if the server names a wrong one."),
    )
    trusts_annotations = forms.BooleanField(
        label=_("Trust what this server says about its tools"),
        required=False,
        help_text=_("Tools that it marks as read-only then run without asking."),
    )


class UseFields(SectionedForm):
    """Asks where a new server of the workspace is used."""

    use = forms.ChoiceField(
        label=_("Where it is used"),
        choices=USE_CHOICES,
        initial=ServerUse.EVERY_BUD.value,
        required=False,
        widget=forms.RadioSelect,
    )
    bud_ids = forms.TypedMultipleChoiceField(
        label=_("Buds"), coerce=UUID, required=False, widget=BudsToChoose
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "use" not in self.fields:
            return
        self.order_fields([name for name in self.fields if name not in ("use", "bud_ids")])
        buds = buds_by_name(workspace)
        self.fields["bud_ids"].choices = buds  # type: ignore[attr-defined]
        self.fields["bud_ids"].widget.workspace = workspace
        if not buds:
            self.fields.pop("bud_ids")
            self.fields["use"].choices = [  # type: ignore[attr-defined]
                one for one in USE_CHOICES if one[0] != ServerUse.CHOSEN_BUDS
            ]

    def add_prefix(self, field_name: str) -> str:
        """The buds have the name that the search for them knows."""
        return field_name if field_name == "bud_ids" else super().add_prefix(field_name)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        is_chosen = cleaned.get("use") == ServerUse.CHOSEN_BUDS
        if is_chosen and not cleaned.get("bud_ids"):
            self.add_error("bud_ids", _("Choose a bud."))
        return cleaned

    def where(self) -> WhereUsed:
        """The answer."""
        values = self.cleaned_data
        use = ServerUse(values.get("use") or ServerUse.EVERY_BUD)
        chosen = values.get("bud_ids", ()) if use is ServerUse.CHOSEN_BUDS else ()
        return WhereUsed(is_used_everywhere=use is ServerUse.EVERY_BUD, bud_ids=tuple(chosen))

    def where_values(self) -> dict[str, Any]:
        """The answer, as a draft takes it."""
        return asdict(self.where())


class WhereForm(UseFields):
    """Asks this alone, beside what a page asks in its own way."""

    SECTIONS: ClassVar = (USE_SECTION,)


def read_where(data: QueryDict, workspace: Workspace) -> WhereUsed:
    """What a page that asks nothing else says of it; without a word, everywhere.

    Raises:
        InvalidInput: it names no bud, or one that is not there.
    """
    form = WhereForm(data, workspace=workspace)
    if not form.is_valid():
        raise InvalidInput(" ".join(str(text) for texts in form.errors.values() for text in texts))
    return form.where()


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
                fields={
                    field: [
                        _("Write one name%(separator)s value on each line, each name once.")
                        % {"separator": separator}
                    ]
                }
            )
        values[name.strip()] = value.strip()
    return values


def read_auth(auth_type: str, name: str, secret: str) -> dict[str, str]:
    """The two inputs of the form as the credentials that this kind of authentication takes; empty: none are given."""
    if auth_type in OAUTH_TYPES:
        given = {"client_id": name.strip(), "client_secret": secret}
        return {name: value for name, value in given.items() if value}
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


def read_roots(text: str) -> list[dict[str, str]]:
    """The folders that were entered, one "name = file:///…" on each line.

    Raises:
        InvalidInput: a line has no name.
    """
    roots = []
    for line in filter(str.strip, text.splitlines()):
        name, found, uri = line.partition("=")
        if not found:
            raise InvalidInput(fields={"roots": [_("Write name = file:///… on each line.")]})
        roots.append({"name": name.strip(), "uri": uri.strip()})
    return roots


def written_roots(roots: Sequence[Mapping[str, str]]) -> str:
    """The folders as they are entered."""
    return "\n".join(f"{root.get('name') or 'Folder'} = {root['uri']}" for root in roots)
