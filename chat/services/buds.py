"""What an admin does with buds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.check_shapes import CheckShape
from chat.models import Bud, BudVersion, BudVisibility, ModelProvider
from chat.services.check_demands import ChecksNotPassed, answered_by, let_through
from chat.services.providers import refuse_withheld
from chat.services.version_notes import USES_SERVER
from chat.tools.missing_tools import find_faults
from mcp_servers.models import McpServer, McpTool
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput
from workspaces.roles import Permission, has_permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.words.names import seen_name

FIELDS = (
    "slug",
    "name",
    "description",
    "avatar",
    "system_prompt",
    "model",
    "parameters",
    "starter_prompts",
    "mcp_config",
    "tool_protocol",
    "makes_artifacts",
    "takes_all_tools",
    "is_model_fixed",
    "is_archived",
    "colour",
    "visibility",
    "members_may_edit",
)


def may_edit(bud: Bud, actor: Actor) -> bool:
    """Whether somebody may change a bud that they see."""
    if has_permission(actor, Permission.MANAGE_BUDS, workspace_id=bud.workspace_id):
        return True
    return bud.members_may_edit and has_permission(
        actor, Permission.USE_CHAT, workspace_id=bud.workspace_id
    )


def require_edit(bud: Bud, actor: Actor) -> None:
    """Raise PermissionDenied for somebody who may not change a bud."""
    if not may_edit(bud, actor):
        require(actor, Permission.MANAGE_BUDS, workspace_id=bud.workspace_id)


@transaction.atomic
def create_bud(
    *,
    workspace_id: UUID,
    actor: Actor,
    values: dict[str, Any],
    provider_id: UUID | None = None,
    note: str = "",
) -> Bud:
    """Make a bud out of checked values (those of FIELDS). It takes all tools, unless the values say otherwise.

    Raises:
        InvalidInput: a value does not fit, or names a server or provider that is not of here.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    bud = Bud(workspace_id=workspace_id, takes_all_tools=True, owner_id=actor.user_id)
    assign_values(bud, values, provider_id)
    _refuse_withheld_model(bud)
    _store(bud, is_new=True)
    record_created(bud, actor=actor)
    _keep_version(bud, actor.label, note)
    _announce(bud)
    return bud


@transaction.atomic
def update_bud(
    *,
    bud: Bud,
    actor: Actor,
    values: dict[str, Any],
    provider_id: UUID | None = None,
    has_provider: bool = False,
    base_version: int | None = None,
    note: str = "",
    shapes: Sequence[CheckShape] | None = None,
    restored: int | None = None,
    skips_checks: bool = False,
) -> Bud:
    """Change a bud; `has_provider` says whether `provider_id` is meant to be set.

    Args:
        base_version: the version that the caller has seen; None: whichever it is.
        shapes: the checks that it will have; None: those that it has.
        restored: the version that comes back, if it is one.
        skips_checks: save it though the checks that the bud demands have not passed; the log says so.

    Raises:
        InvalidInput: as in `create_bud`.
        Conflict: somebody else has saved the bud since that version.
        ChecksNotPassed: the bud demands that its checks pass with a change first.
    """
    rows = Bud.objects.for_workspace(bud.workspace_id).select_for_update(of=("self",))
    stored: Bud = rows.fetch(bud.pk)
    require_edit(stored, actor)
    if base_version is not None and stored.version != base_version:
        raise Conflict(
            _(
                "Someone else saved this bud in the meantime. Look at their changes, then save again."
            ),
            details={"version": stored.version},
        )
    before, answered_before = values_of(stored), _answered_by(stored)
    with tracked_change(stored, actor=actor):
        assign_values(stored, values, provider_id if has_provider else stored.provider_id)
        if (stored.model, str(stored.provider_id)) != (
            before["model"],
            str(before["provider_id"]),
        ):
            _refuse_withheld_model(stored)
        if stored.visibility != before["visibility"] == BudVisibility.WORKSPACE:
            stored.owner_id = actor.user_id  # "only me" means whoever says it
        if values_of(stored) != before:
            if not stored.versions.exists():  # it is older than versions are
                _keep_version(stored, "", "", values=before)
            stored.version += 1
            _keep_version(stored, actor.label, note)
            if _answered_by(stored) != answered_before:
                let_through(
                    stored,
                    shapes=shapes,
                    restored=restored,
                    is_skipped=skips_checks,
                    actor=actor,
                )
        _store(stored)
    _announce(stored)
    return stored


def _answered_by(bud: Bud) -> dict[str, Any] | None:
    """None: what is stored fits its schema no more, so whatever comes may answer differently."""
    try:
        return answered_by(bud)
    except InvalidInput:
        return None


def values_of(bud: Bud) -> dict[str, Any]:
    """Give what people set of a bud, as its versions keep it."""
    kept = {name: getattr(bud, name) for name in FIELDS}
    return {**kept, "provider_id": str(bud.provider_id) if bud.provider_id else None}


def _keep_version(
    bud: Bud, made_by: str, note: str, *, values: dict[str, Any] | None = None
) -> None:
    BudVersion.objects.create(
        workspace_id=bud.workspace_id,
        bud=bud,
        number=bud.version,
        values=values or values_of(bud),
        made_by=made_by[:254],
        note=note[:200],
    )


@transaction.atomic
def put_server_into_buds(*, server: McpServer, bud_ids: Iterable[UUID], actor: Actor) -> None:
    """Have these buds use a server of their workspace, besides those that they use already.

    Raises:
        InvalidInput: there is no such bud here, or one demands that its checks pass first.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=server.workspace_id)
    wanted = set(bud_ids)
    rows = Bud.objects.for_workspace(server.workspace_id).usable_by(actor.user_id)
    rows = rows.filter(pk__in=wanted, is_archived=False, is_draft=False)
    buds = list(rows.select_for_update(of=("self",)))
    if len(buds) != len(wanted):
        raise InvalidInput(fields={"bud_ids": [_("A bud named here is not in this workspace.")]})
    for bud in buds:
        if server.pk in bud.mcp.servers:
            continue
        named = [*(bud.mcp_config.get("servers") or []), str(server.pk)]
        try:
            update_bud(
                bud=bud,
                actor=actor,
                values={"mcp_config": {**bud.mcp_config, "servers": named}},
                note=USES_SERVER % {"name": server.name},
            )
        except ChecksNotPassed as error:
            message = _(
                "“%(name)s” takes a change only after its checks have passed with it. Add the server without it, then choose the server in the bud's editor."
            )
            raise InvalidInput(fields={"bud_ids": [message % {"name": bud.name}]}) from error


def offered_servers(workspace_id: UUID) -> WorkspaceQuerySet[McpServer]:
    """The servers that a bud may name: a person's own are nobody else's to hand out."""
    return McpServer.objects.for_workspace(workspace_id).shared()


def offered_tools(workspace_id: UUID) -> WorkspaceQuerySet[McpTool]:
    """The tools that a bud may name: all that the servers of `offered_servers` offer now."""
    servers = offered_servers(workspace_id).order_by().values("pk")
    return McpTool.objects.for_workspace(workspace_id).offered().filter(server__in=servers)


def assign_values(bud: Bud, values: dict[str, Any], provider_id: UUID | None) -> None:
    """Put checked values into a bud, without saving it.

    Raises:
        InvalidInput: as in `create_bud`.
    """
    for name in FIELDS:
        if name in values:
            setattr(bud, name, values[name])
    if provider_id is not None:
        providers = ModelProvider.objects.for_workspace(bud.workspace_id)
        if providers.find(provider_id) is None:
            raise InvalidInput(fields={"provider_id": [_("There is no such provider here.")]})
    bud.provider_id = provider_id
    _check(bud)
    if "mcp_config" not in values:
        return  # a bud that has lost a tool can still be renamed or archived
    check_servers(bud.mcp.servers, offered_servers(bud.workspace_id), field="mcp_config")
    if faults := find_faults(bud):
        raise InvalidInput(fields={"mcp_config": faults})


def _check(bud: Bud) -> None:
    bud.name = seen_name(bud.name)
    try:
        bud.full_clean(exclude=["workspace"])
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    others = Bud.objects.for_workspace(bud.workspace_id).exclude(pk=bud.pk)
    if others.filter(slug=bud.slug).exists():
        raise InvalidInput(fields={"slug": [_("Another bud has this short name already.")]})


def _store(bud: Bud, *, is_new: bool = False) -> None:
    try:
        with transaction.atomic():
            bud.save(force_insert=is_new, force_update=not is_new)
    except IntegrityError:
        _check(bud)  # somebody took its name at the same moment
        raise


def _refuse_withheld_model(bud: Bud) -> None:
    """Raise InvalidInput for a model that the workspace may not use; a bud that lost its model can still be changed."""
    if bud.provider is not None:
        refuse_withheld(bud.provider, bud.model or bud.provider.default_model, "model")


def check_servers(
    servers: Iterable[UUID], known: WorkspaceQuerySet[McpServer], *, field: str
) -> None:
    """Raise InvalidInput for servers that are not among the known ones."""
    wanted = set(servers)
    if len(wanted) != known.filter(pk__in=wanted).count():
        raise InvalidInput(fields={field: [_("A server named here is not in this workspace.")]})


def _announce(bud: Bud) -> None:
    announce(bud.workspace_id, Announcement(kind="bud.changed", id=str(bud.pk)))
