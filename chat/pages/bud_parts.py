"""What the pages about buds share: the bud that may be edited, the tabs, and how faults and changes are told."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.models import Bud, ModelProvider
from chat.pages.bud_form import label_of
from chat.services.bud_versions import changes_between
from chat.services.buds import offered_servers, require_edit
from workspaces.errors import Conflict, InvalidInput
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


def editable_bud(request: WorkspaceRequest, bud_id: UUID) -> Bud:
    """Give a bud that the person may edit; another's is not found."""
    rows = Bud.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    bud: Bud = rows.filter(is_draft=False).select_related("provider", "workspace").fetch(bud_id)
    require_edit(bud, request.actor)
    return bud


def context_of(request: WorkspaceRequest, bud: Bud | None = None) -> dict[str, Any]:
    """What every page about buds needs, and the tabs of one."""
    workspace = workspace_of(request)
    slug = workspace.slug
    tabs = []
    if bud is not None:
        url = partial(reverse, args=[slug, bud.pk])
        tabs = [
            ("edit", _("Editor"), url("chat:bud")),
            ("versions", _("Versions"), url("chat:bud_versions")),
            ("quality", _("Quality"), url("chat:bud_quality")),
        ]
    return {
        "section": "buds",
        "bud": bud,
        "tabs": tabs,
        "buds_url": reverse("chat:buds", args=[slug]),
        "can_make": has_permission(
            request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk
        ),
    }


def faults_of(error: InvalidInput) -> dict[str, list[str]]:
    """What is wrong, by the field; a fault of the whole stands at no name."""
    fields = {name: [str(one) for one in texts] for name, texts in error.fields.items()}
    return fields or {"": [error.message]}


def errors_in_words(error: InvalidInput | Conflict) -> str:
    """What is wrong, in sentences without their fields."""
    if isinstance(error, InvalidInput):
        return " ".join(one for texts in faults_of(error).values() for one in texts)
    return error.message


def names_for(workspace_id: UUID) -> dict[str, str]:
    """Give the names of what versions of buds name by ids: servers and model providers."""
    providers = ModelProvider.objects.for_workspace(workspace_id)
    rows = [*offered_servers(workspace_id).values_list("pk", "name")]
    rows += providers.values_list("pk", "name")
    return {str(pk): name for pk, name in rows}


def changes_in_words(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """How one version differs from an earlier one, by the names of the editor's fields.

    Args:
        names: see `names_for`. A server that is gone keeps its id.
    """
    versions = [
        {name: _value_in_words(name, value, names) for name, value in of.items()}
        for of in (before, after)
    ]
    return [
        {"label": label_of(change.field), "lines": change.lines}
        for change in changes_between(*versions)
    ]


def _value_in_words(field: str, value: Any, names: Mapping[str, str]) -> Any:
    """Give a value of a version as people know it."""
    match value:
        case bool():
            return _("yes") if value else _("no")
        case str() if field == "provider_id" and value and value not in names:
            return _("a provider that was deleted")
        case dict() | list() | str() if field in {"mcp_config", "provider_id"}:
            return _named(value, names)
    return value


def _named(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {key: _named(one, names) for key, one in value.items()}
        case list():
            return [_named(one, names) for one in value]
        case str():
            known, dot, rest = value.partition(".")
            return f"{names.get(known, known)}{dot}{rest}"
    return value
