"""The log in the admin: to read only. Bodies are on the log's own page, where reading them is recorded."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.filters import ChoicesFieldListFilter
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit.actions import outcome_in_words, title_of
from audit.models import AuditEntry
from audit.reports.filter_words import Words, choice_in_words, source_in_words
from audit.views.words import ended
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import ReadOnly, WorkspaceModelAdmin
from workspaces.roles import Permission


def _in_words(name: str, code: str) -> str:
    match name:
        case "action":
            return gettext(title_of(code))
        case "outcome":
            return gettext(outcome_in_words(code))
    return choice_in_words(name, code)


class CodesInWords(ChoicesFieldListFilter):
    """A filter that shows what its codes mean."""

    def choices(self, changelist: Any) -> Any:
        """Offer the same choices, with words for the codes."""
        for choice in super().choices(changelist):
            code, bracket, count = str(choice["display"]).partition(" (")
            words = _in_words(self.field.name, code)
            yield {**choice, "display": f"{words}{bracket}{count}"}


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, WorkspaceModelAdmin):
    """Entries of the current workspace, without arguments and results."""

    section = AdminSection.LOG
    page_name = _("Entries, all fields")
    manage_permission = Permission.VIEW_AUDIT
    list_display = ["created_at", "what", "who", "through", "server_name", "tool_name", "how"]
    list_filter = [(name, CodesInWords) for name in ("action", "outcome", "refused_by", "source")]
    search_fields = ["actor_label", "server_name", "tool_name"]
    ordering = ["-id"]
    show_full_result_count = False
    exclude = ["arguments_preview", "result_preview"]
    actions = None
    offers_export = False  # the log has exports of its own, for auditors

    @admin.display(description=_("What"), ordering="action")
    def what(self, entry: AuditEntry) -> str:
        return _in_words("action", entry.action)

    @admin.display(description=_("Who"), ordering="actor_label")
    def who(self, entry: AuditEntry) -> str:
        return entry.actor_label

    @admin.display(description=_("Through"), ordering="source")
    def through(self, entry: AuditEntry) -> Words:
        return source_in_words(entry.source)

    @admin.display(description=_("Outcome"), ordering="outcome")
    def how(self, entry: AuditEntry) -> Words:
        return ended(entry.outcome, entry.refused_by)[0]
