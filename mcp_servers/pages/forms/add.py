"""Forms of the servers page with which servers are added."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import StdioProgram
from mcp_servers.models.server_credentials import AccountUse, AuthType
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.pages.forms.common import (
    TRUST_SECTION,
    USE_SECTION,
    ServerFields,
    UseFields,
    read_auth,
    read_lines,
)
from mcp_servers.pages.forms.programs import ProgramFields
from mcp_servers.pages.forms.sections import FormSection, ShownSection
from mcp_servers.registry.services import ServerDraft
from workspaces.outbound import MAX_URL_LENGTH


class AddServerForm(ServerFields, UseFields):
    """A server by its address."""

    SECTIONS: ClassVar = (
        FormSection(
            title=_("Where it is"),
            names=(
                *("name", "url", "auth_type", "auth_name", "auth_secret"),
                *("account_use", "oauth_scope"),
            ),
        ),
        TRUST_SECTION,
        USE_SECTION,
        FormSection(
            title=_("Advanced"), names=("transport", "protocol", "headers"), is_folded=True
        ),
    )

    url = forms.CharField(
        label=_("URL"),
        max_length=MAX_URL_LENGTH,
        widget=forms.URLInput(attrs={"placeholder": "https://example.com/mcp"}),
        help_text=lazy(transports.address_help, str)(),
    )
    transport = forms.ChoiceField(
        label=_("Transport"),
        choices=transports.remote_choices,
        initial=transports.AUTO,
        required=False,
        help_text=lazy(transports.automatic_help, str)(),
    )
    auth_type = forms.ChoiceField(
        label=_("Authentication"),
        choices=AuthType.choices,
        initial=AuthType.NONE,
        help_text=_(
            "With sign-in, people sign in on the server's own page. You will find the callback URL in the settings after adding the server."
        ),
    )
    headers = forms.CharField(
        label=_("Further headers"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "placeholder": "X-Team: garden", "spellcheck": "false"}
        ),
        help_text=_("One name: value on each line. Stored encrypted, and never shown again."),
    )

    def draft(self) -> ServerDraft:
        """What the form says.

        Raises:
            InvalidInput: the headers cannot be read.
        """
        values = self.cleaned_data
        return ServerDraft(
            name=values["name"],
            transport=values["transport"] or transports.AUTO,
            url=values["url"],
            auth_type=AuthType(values["auth_type"]),
            auth=read_auth(values["auth_type"], values["auth_name"], values["auth_secret"]),
            account_use=AccountUse(values.get("account_use") or AccountUse.USER),
            oauth_scope=values["oauth_scope"],
            headers=read_lines(values["headers"], separator=":", field="headers"),
            protocol=Protocol(values["protocol"]),
            trusts_annotations=values["trusts_annotations"],
            **self.where_values(),
        )


class PersonalServerForm(AddServerForm):
    """A server of the person's own: only its owner sees and uses it, so it is trusted with nothing."""

    # How Django leaves out fields of the parent.
    trusts_annotations = None  # type: ignore[assignment]
    account_use = None  # type: ignore[assignment]
    use = None  # type: ignore[assignment]
    bud_ids = None  # type: ignore[assignment]
    prefix = "personal"

    is_used_everywhere = forms.BooleanField(
        label=_("Use in all my chats"),
        required=False,
        initial=True,
        help_text=_("You can switch it off in a single chat, and change this in its settings."),
    )

    def where_values(self) -> dict[str, Any]:
        """The answer, as a draft takes it."""
        return {"is_used_everywhere": self.cleaned_data["is_used_everywhere"]}

    def draft(self) -> ServerDraft:
        """What the form says.

        Raises:
            InvalidInput: the headers cannot be read.
        """
        self.cleaned_data["trusts_annotations"] = False
        return super().draft()


class ProgramForm(ProgramFields, UseFields):
    """A program from the platform's catalogue, with the parameters of the one that was chosen.

    Args:
        chosen: the program's slug, while nothing is sent yet; empty: the person has to choose first.
    """

    SECTIONS: ClassVar = (
        FormSection(title=_("Name and parameters"), names=("name",)),
        TRUST_SECTION,
        USE_SECTION,
    )

    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME_LENGTH,
        help_text=_("People see this name, and it is part of the tools' names."),
    )
    program = forms.ModelChoiceField(
        label=_("Program"),
        queryset=StdioProgram.objects.none(),
        to_field_name="slug",
        widget=forms.HiddenInput,
    )
    trusts_annotations = forms.BooleanField(
        label=_("Trust what this program says about its tools"),
        required=False,
        help_text=_("Tools that it marks as read-only then run without asking."),
    )
    prefix = "catalogue"

    def __init__(self, *args: Any, chosen: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.programs = list(StdioProgram.objects.filter(is_enabled=True))
        self.fields["program"].queryset = StdioProgram.objects.filter(is_enabled=True)  # type: ignore[attr-defined]
        wanted = self.data.get(self.add_prefix("program"), chosen)
        self.chosen = next((one for one in self.programs if one.slug == wanted), None)
        if self.chosen is not None:
            self.initial.update(program=self.chosen.slug, name=self.chosen.title)
            self.add_program_fields(self.chosen)

    def sections(self) -> list[ShownSection]:
        """Name and parameters, trust, and use."""
        first, *others = self.SECTIONS
        return self.shown((replace(first, names=("name", *self.program_names)), *others))

    def draft(self) -> ServerDraft:
        """What the form says."""
        values = self.cleaned_data
        return ServerDraft(
            name=values["name"],
            transport=transports.STDIO,
            program=values["program"],
            **self.program_values(),
            trusts_annotations=values["trusts_annotations"],
            **self.where_values(),
        )
