"""The choice of buds where a server is added: a few at a time, searched by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

from django import forms
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from mcp_servers.registry.bud_choices import buds_of
from workspaces.models import Workspace

AT_ONCE: Final = 30
"""Buds that are offered before somebody searches."""
_MAX_SEARCH: Final = 100

NamedBud: TypeAlias = "tuple[str, str]"
"""Its id and its name."""


class BudsToChoose(forms.CheckboxSelectMultiple):
    """The buds that were ticked, then the first of the others, then a search for the rest."""

    workspace: Workspace

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        shown = buds_to_choose(
            self.workspace,
            [(str(pk), str(name)) for pk, name in self.choices],
            ticked=value or (),
        )
        return SafeString(
            f'<div class="bud-choice">'
            f"{render_to_string('mcp_servers/_buds_to_choose.html', shown)}</div>"
        )


def buds_by_name(workspace: Workspace) -> list[NamedBud]:
    """All buds of a workspace."""
    return [(str(bud.id), bud.name) for bud in buds_of(workspace.pk)]


def buds_to_choose(
    workspace: Workspace, known: Iterable[NamedBud], *, ticked: Collection[str], query: str = ""
) -> dict[str, Any]:
    """What the template shows: what was ticked stays, whatever is searched."""
    query = query.replace("\0", "").strip()[:_MAX_SEARCH]
    known, ticked = list(known), {str(one) for one in ticked}
    chosen = [(pk, name, True) for pk, name in known if pk in ticked]
    fitting = [
        (pk, name, False)
        for pk, name in known
        if pk not in ticked and query.casefold() in name.casefold()
    ]
    return {
        "buds_url": reverse("mcp_servers:buds_to_choose", args=[workspace.slug]),
        "query": query,
        "buds": chosen + fitting[:AT_ONCE],
        "is_searched": len(known) > AT_ONCE,
        "is_cut": len(fitting) > AT_ONCE,
    }
