"""What belongs to the platform, for its owner alone: the catalogue of programs, and the servers of its file."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from mcp_servers.models import GlobalServer, StdioProgram, version_pins
from mcp_servers.pages.forms.program_entry import ProgramEntryForm
from mcp_servers.registry import services
from mcp_servers.registry.catalogue.platform_source import known_servers
from workspaces.pages.model_admin import PlatformModelAdmin, ReadOnly, actor_of, telling
from workspaces.pages.row_actions import ConfirmQuestion, row_action


@admin.register(StdioProgram)
class StdioProgramAdmin(PlatformModelAdmin):
    """The platform's catalogue, for its owner alone."""

    form = ProgramEntryForm
    deletion_note = _("Nobody can add a server that runs it any more. No server runs it now.")
    list_display = ("title", "slug", "command", "is_enabled", "problem")
    where_from = _(
        "A program is an MCP server that Trellis starts on this machine. Workspaces choose among those that you add here."
    )
    search_fields: ClassVar[Any] = ("title", "slug")
    fieldsets = (
        (None, {"fields": ("title", "slug", "description", "is_enabled", "problem")}),
        (_("What it runs"), {"fields": ("command", "args")}),
        (_("What a workspace fills in"), {"fields": ("parameters",)}),
        (_("Advanced"), {"classes": ("collapse",), "fields": ("env_names", "file_hash")}),
    )
    readonly_fields = ("problem", "file_hash")
    actions = ("accept_files", "withdraw")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A program of the catalogue of well-known servers, if the address names one; the owner looks it over."""
        known = known_servers().get(request.GET.get("known", ""))
        if known is None or known.program is None:
            return {}
        recipe = known.program
        return {
            "title": known.title,
            "slug": known.slug,
            "description": known.description,
            "command": recipe.command,
            "args": list(recipe.args),
            "parameters": [one.model_dump(mode="json") for one in recipe.parameters],
            "env_names": list(recipe.env_names),
        }

    def save_model(self, request: HttpRequest, obj: StdioProgram, form: Any, change: bool) -> None:
        with telling(request):
            services.save_program(program=obj, actor=actor_of(request))
            if missing := version_pins.missing_files(obj.command, obj.args):
                message = _(
                    "%(missing)s is not on this machine, so servers that run this program cannot start here. Install it"
                    " (in a container: in its image) or correct the path, then save this program again: Trellis starts"
                    " only the files that it saw."
                )
                messages.warning(request, message % {"missing": ", ".join(missing)})
            elif not change:
                messages.info(
                    request,
                    _("To use it, open Servers in a workspace, then “Add a server” and “Program”."),
                )

    def get_fieldsets(self, request: HttpRequest, obj: StdioProgram | None = None) -> Any:
        """What is found out about a program comes once it is there."""
        if obj is not None:
            return super().get_fieldsets(request, obj)
        return [
            (
                name,
                {
                    **options,
                    "fields": [f for f in options["fields"] if f not in self.readonly_fields],
                },
            )
            for name, options in super().get_fieldsets(request, obj)
        ]

    def delete_model(self, request: HttpRequest, obj: StdioProgram) -> None:
        with telling(request):
            services.delete_program(program=obj, actor=actor_of(request))

    @row_action(
        _("Offer, with their files as they are now"),
        done=ngettext_lazy(
            "%(count)s program on offer, with its files as they are now.",
            "%(count)s programs on offer, with their files as they are now.",
            "count",
        ),
        permissions=["change"],
    )
    def accept_files(self, request: HttpRequest, row: StdioProgram) -> None:
        services.accept_program(program=row, actor=actor_of(request))

    @row_action(
        _("Withdraw"),
        done=ngettext_lazy(
            "%(count)s program withdrawn.", "%(count)s programs withdrawn.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Withdraw %(count)s program?", "Withdraw %(count)s programs?", "count"
            ),
            consequence=_(
                "Workspaces can no longer choose it, and tools of servers that run it can no longer be called. Its entry"
                " stays, and you can offer it again."
            ),
            verb=_("Withdraw"),
        ),
        permissions=["change"],
    )
    def withdraw(self, request: HttpRequest, row: StdioProgram) -> None:
        services.withdraw_program(program=row, actor=actor_of(request))


@admin.register(GlobalServer)
class GlobalServerAdmin(ReadOnly, PlatformModelAdmin):
    """The servers of the platform's file, as workspaces may know them; the file itself is where they are changed."""

    where_from = _(
        "You name them in a file on this machine, see MCP_SERVERS_FILE in docs/configuration.md. Workspaces choose among them."
    )
    list_display = ("name", "transport", "where", "is_required", "is_present")
    list_filter = ("is_required", "is_present", "transport")
    search_fields: ClassVar[Any] = ("name",)
    fields = ("name", "transport", "where", "is_required", "is_present", "updated_at")
    readonly_fields = fields

    @admin.display(description=_("Where"))
    def where(self, server: GlobalServer) -> str:
        return server.target_label
