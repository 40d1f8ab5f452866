"""Model providers that the platform's owner shares with workspaces: adding one, giving it, and taking it back.

A workspace gets a `ModelProvider` of its own, which buds, chats, prices and usage name like any other. What is taken
back stays there, switched off, for as long as something uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from chat.models import Bud, Conversation, ModelProvider, SharedProvider, Withheld
from chat.providers.shared import find_shared, hold_shared
from chat.providers.specs import trial_spec_of
from chat.services.provider_check import prove_key
from chat.services.providers import read_key
from mcp_servers.models import McpServer
from workspaces.actors import Actor
from workspaces.changes import (
    CHANGED,
    ConfigurationChange,
    configuration_changed,
    record_changed,
    record_created,
    record_deleted,
    tracked_change,
)
from workspaces.database import database_now
from workspaces.errors import (
    Conflict,
    InvalidEndpoint,
    InvalidInput,
    NotFound,
)
from workspaces.models import Workspace
from workspaces.outbound import HTTP_SCHEMES, parse_endpoint
from workspaces.roles import require_platform_owner
from workspaces.row_security import everywhere
from workspaces.scoping import WorkspaceQuerySet
from workspaces.secrets import Secret

_BEHIND: Final = ("base_url", "api_key", "most_at_once", "most_a_minute")
"""What workspaces are told of only that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDraft:
    """What a shared provider shall be."""

    name: str
    base_url: str
    default_model: str
    is_for_all: bool = False
    most_at_once: int | None = None
    most_a_minute: int | None = None
    """Requests of all workspaces together; further ones wait. None: no limit."""
    api_key: str = ""
    """Empty: what is stored stays, as long as the address is of the same origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What a shared provider is used for."""

    workspaces: int
    """That have it."""
    buds: int
    chats: int
    """Whose model is one of its."""


def share_provider(*, draft: SharedDraft, actor: Actor, is_tested: bool = True) -> SharedProvider:
    """Store a provider that workspaces can be given, and give it to all if the draft says so. Its key is tried first.

    Args:
        is_tested: False: store the key though it could not be tried, as while the provider is down.

    Raises:
        PermissionDenied: the actor does not own the platform.
        InvalidInput: with each faulty field, also a key that the provider refused.
        ProviderKeyUntested: the provider gave no answer for another reason.
    """
    require_platform_owner(actor)
    shared = SharedProvider()
    _put(shared, draft)
    if draft.api_key and is_tested:
        prove_key(trial_spec_of(shared))
    with transaction.atomic(), everywhere():
        _save(shared)
        record_created(shared, actor=_of_platform(actor))
        if shared.is_for_all:
            _give_to_rest(shared, actor)
    return shared


def change_shared_provider(
    *, shared: SharedProvider, draft: SharedDraft, actor: Actor, is_tested: bool = True
) -> SharedProvider:
    """Change it for every workspace that has it. A new key is tried first, and answers under way end with the old one.

    A key goes with it only to addresses of the same origin.

    Args:
        shared: as whoever changes it has seen it.

    Raises:
        PermissionDenied, InvalidInput, ProviderKeyUntested: as above.
        Conflict: somebody else changed it meanwhile.
        NotFound: somebody else deleted it.
    """
    require_platform_owner(actor)
    if draft.api_key:
        wanted = SharedProvider(pk=shared.pk)
        _put(wanted, draft)
        _refuse_same_key(shared, wanted)
        if is_tested:
            prove_key(trial_spec_of(wanted))
    with _holding(shared) as stored:
        if stored.updated_at != shared.updated_at:
            told = _("Somebody else changed this provider meanwhile. Look at it, and save again.")
            raise Conflict(told)
        old = {name: getattr(stored, name) for name in ("name", "default_model", *_BEHIND)}
        with tracked_change(stored, actor=_of_platform(actor)):
            _put(stored, draft)
            _save(stored)
        behind = [name for name in _BEHIND if getattr(stored, name) != old[name]]
        _tell_workspaces(stored, old, behind, actor)
        if stored.is_for_all:
            _give_to_rest(stored, actor)
    return stored


def switch_shared_provider(*, shared: SharedProvider, is_active: bool, actor: Actor) -> None:
    """Switch it on or off for every workspace that has it. Answers under way go on.

    Raises:
        PermissionDenied: the actor does not own the platform.
        NotFound: somebody else deleted it.
    """
    require_platform_owner(actor)
    before, after = Withheld.SWITCHED_OFF, Withheld.NO
    if not is_active:
        before, after = after, before
    with _holding(shared) as stored:
        with tracked_change(stored, actor=_of_platform(actor)):
            stored.is_active = is_active
            stored.save(update_fields=["is_active", "updated_at"])
        _change_all(_given(stored).filter(withheld=before.value), actor, withheld=after.value)


def give_provider(*, shared: SharedProvider, workspace: Workspace, actor: Actor) -> None:
    """Let a workspace use it; nothing changes where it may already.

    Raises:
        PermissionDenied, NotFound: as above.
    """
    require_platform_owner(actor)
    with _holding(shared) as stored:
        row = _given(stored).filter(workspace=workspace).first()
        if row is None:
            _give(stored, [workspace.pk], actor)
        elif row.withheld == Withheld.WITHDRAWN:
            _change_all([row], actor, withheld=_when_given(stored).value)


def withdraw_provider(*, shared: SharedProvider, workspace: Workspace, actor: Actor) -> None:
    """Take it from a workspace. Buds and chats that use it stay, and cannot be answered until they get another model.

    Raises:
        PermissionDenied, NotFound: as above.
        Conflict: it is for every workspace.
    """
    require_platform_owner(actor)
    with _holding(shared) as stored:
        if stored.is_for_all:
            told = _("This provider is for every workspace. Share it with chosen ones first.")
            raise Conflict(told)
        row = _given(stored).filter(workspace=workspace).select_for_update().first()
        if row is None or row.withheld == Withheld.WITHDRAWN:
            return
        if _used([row]):
            _change_all([row], actor, withheld=Withheld.WITHDRAWN.value)
        else:
            _delete([row], actor)


def delete_shared_provider(*, shared: SharedProvider, actor: Actor) -> None:
    """Delete it with its key.

    Where a workspace uses it, a provider of the same name stays for its buds and chats: switched off, the workspace's
    own from now on, and without address and key.

    Raises:
        PermissionDenied, NotFound: as above.
    """
    require_platform_owner(actor)
    with _holding(shared) as stored:
        rows = list(_given(stored).select_for_update())
        used = _used(rows)
        left = [row for row in rows if row.pk in used]
        _change_all(left, actor, shared_id=None, withheld=Withheld.NO.value, is_active=False)
        _delete([row for row in rows if row.pk not in used], actor)
        record_deleted(stored, actor=_of_platform(actor))
        stored.delete()


def uses_of(shared: SharedProvider) -> Uses:
    """Count who would notice that it is gone."""
    rows = ModelProvider.objects.across_workspaces().filter(shared=shared)
    rows = rows.exclude(withheld=Withheld.WITHDRAWN.value)
    return Uses(
        workspaces=rows.count(), buds=_buds_of(shared).count(), chats=_chats_of(shared).count()
    )


def uses_by_workspace(shared: SharedProvider, workspaces: Sequence[Workspace]) -> dict[UUID, Uses]:
    """The same for each of these workspaces, in two statements."""
    counts = [
        dict(
            rows.filter(workspace__in=workspaces)
            .order_by()
            .values_list("workspace_id")
            .annotate(number=Count("pk"))
        )
        for rows in (_buds_of(shared), _chats_of(shared))
    ]
    buds, chats = counts
    return {
        one.pk: Uses(workspaces=1, buds=buds.get(one.pk, 0), chats=chats.get(one.pk, 0))
        for one in workspaces
    }


def _buds_of(shared: SharedProvider) -> WorkspaceQuerySet[Bud]:
    rows: WorkspaceQuerySet[Bud] = Bud.objects.across_workspaces()
    return rows.filter(provider__shared=shared, is_draft=False)


def _chats_of(shared: SharedProvider) -> WorkspaceQuerySet[Conversation]:
    is_chosen = Q(chosen_model__provider__shared=shared)
    by_bud = Q(chosen_model=None, bud__provider__shared=shared)
    rows: WorkspaceQuerySet[Conversation] = Conversation.objects.across_workspaces()
    return rows.filter(is_chosen | by_bud, deleted_at=None, bud__is_draft=False)


def fetch_for_owner(shared_id: UUID, *, actor: Actor) -> SharedProvider:
    """One of them, for whoever owns the platform.

    Raises:
        PermissionDenied: the actor does not.
        NotFound: there is no such one.
    """
    require_platform_owner(actor)
    shared = find_shared(shared_id)
    if shared is None:
        raise NotFound(_("Model provider not found."))
    return shared


def listen_to_new_workspaces() -> None:
    """Called once at start."""
    configuration_changed.connect(
        _workspace_made, sender=Workspace, dispatch_uid="chat.shared_providers"
    )


def _workspace_made(sender: type[Workspace], change: ConfigurationChange, **_: Any) -> None:
    if change.verb != "created" or change.workspace_id is None:
        return
    with everywhere():
        # All are held: whoever gives one to every workspace right now sees this one, or is seen here.
        rows = list(SharedProvider.objects.select_for_update(no_key=True).order_by("pk"))
        for shared in rows:
            if shared.is_for_all:
                _give(shared, [change.workspace_id], change.actor)


@contextmanager
def _holding(shared: SharedProvider) -> Iterator[SharedProvider]:
    """One after another, within the reach of all workspaces.

    Raises:
        NotFound: it is deleted.
    """
    with transaction.atomic(), everywhere():
        stored = hold_shared(shared.pk)
        if stored is None:
            raise NotFound(_("This provider was deleted."))
        yield stored


def _put(shared: SharedProvider, draft: SharedDraft) -> None:
    """Take over what the draft says.

    Raises:
        InvalidInput: with each faulty field.
    """
    origin = shared.origin
    shared.name = draft.name.strip()
    shared.base_url = draft.base_url.strip()
    shared.default_model = draft.default_model.strip()
    shared.is_for_all = draft.is_for_all
    shared.most_at_once = draft.most_at_once
    shared.most_a_minute = draft.most_a_minute
    try:
        parse_endpoint(shared.base_url, schemes=HTTP_SCHEMES)
        if draft.api_key:
            shared.api_key = Secret(read_key(draft.api_key))
        elif shared.origin != origin:
            shared.api_key = None
        shared.full_clean(validate_unique=False, validate_constraints=False)
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"base_url": [error.message]}) from error
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error


def _refuse_same_key(stored: SharedProvider, wanted: SharedProvider) -> None:
    """Whoever pastes the old key by mistake would believe that it was changed."""
    if not stored.api_key or not wanted.api_key or stored.origin != wanted.origin:
        return
    purpose = "comparing keys"
    if stored.api_key.reveal(purpose) == wanted.api_key.reveal(purpose):
        told = _("This key is stored already. Make a new one at the provider, and paste it here.")
        raise InvalidInput(fields={"api_key": [told]})


def _save(shared: SharedProvider) -> None:
    taken = InvalidInput(fields={"name": [_("Another shared provider has this name.")]})
    others = SharedProvider.objects.exclude(pk=shared.pk)
    if others.filter(name__iexact=shared.name).exists():
        raise taken
    try:
        with transaction.atomic():
            shared.save()
    except IntegrityError as error:  # somebody took the name at the same moment
        raise taken from error


def _given(shared: SharedProvider) -> Any:
    return ModelProvider.objects.across_workspaces().filter(shared=shared).order_by("pk")


def _give_to_rest(shared: SharedProvider, actor: Actor) -> None:
    """Give it to every workspace that cannot use it yet."""
    withdrawn = _given(shared).filter(withheld=Withheld.WITHDRAWN.value)
    _change_all(withdrawn, actor, withheld=_when_given(shared).value)
    have = _given(shared).order_by().values("workspace_id")
    _give(shared, Workspace.objects.exclude(pk__in=have).values_list("pk", flat=True), actor)


def _give(shared: SharedProvider, workspace_ids: Iterable[UUID], actor: Actor) -> None:
    wanted = list(workspace_ids)
    names = _Names(shared.name, wanted)
    for workspace_id in wanted:
        row = ModelProvider.objects.create(
            workspace_id=workspace_id,
            shared=shared,
            name=names.free_in(workspace_id),
            base_url="",
            default_model=shared.default_model,
            withheld=_when_given(shared).value,
        )
        record_created(row, actor=_in(workspace_id, actor))


class _Names:
    """A name for each workspace's provider: the shared one's, unless the workspace has one of that name already."""

    def __init__(self, name: str, workspace_ids: Iterable[UUID]) -> None:
        self._name = name
        rows = ModelProvider.objects.across_workspaces().filter(
            workspace_id__in=list(workspace_ids), name__startswith=name
        )
        self._taken = set(rows.values_list("workspace_id", "name"))

    def free_in(self, workspace_id: UUID) -> str:
        name, number = self._name, 1
        while (workspace_id, name) in self._taken:
            told = _("%(name)s (shared)") if number == 1 else _("%(name)s (shared %(number)s)")
            name, number = told % {"name": self._name, "number": number}, number + 1
        return name


def _tell_workspaces(
    shared: SharedProvider, old: dict[str, Any], behind: list[str], actor: Actor
) -> None:
    """Have what workspaces see follow, and their logs say that something behind it changed."""
    is_renamed = shared.name != old["name"]
    is_other_model = shared.default_model != old["default_model"]
    if not (is_renamed or is_other_model or behind):
        return
    rows = list(_given(shared))
    names = _Names(shared.name, [row.workspace_id for row in rows])
    for row in rows:
        theirs = _in(row.workspace_id, actor)
        with tracked_change(row, actor=theirs):
            if is_renamed:
                row.name = names.free_in(row.workspace_id)
            if row.default_model == old["default_model"]:
                row.default_model = shared.default_model
            # Also where nothing of the row is another: what waits for this provider tries again.
            row.save(update_fields=["name", "default_model", "updated_at"])
        if behind and row.withheld != Withheld.WITHDRAWN:
            told = dict.fromkeys(behind, CHANGED)
            record_changed(row, actor=theirs, before={}, after=told)


def _when_given(shared: SharedProvider) -> Withheld:
    return Withheld.NO if shared.is_active else Withheld.SWITCHED_OFF


def _change_all(rows: Iterable[ModelProvider], actor: Actor, **values: Any) -> None:
    """Give these values to the rows of many workspaces in one statement, and tell each log what changed there."""
    changed = list(rows)
    ids = [row.pk for row in changed]
    stored = ModelProvider.objects.across_workspaces().filter(pk__in=ids)
    stored.update(**values, updated_at=database_now())
    after = {name.removesuffix("_id"): value for name, value in values.items()}
    for row in changed:
        before = {name.removesuffix("_id"): _plain(getattr(row, name)) for name in values}
        told = [name for name, value in after.items() if before[name] != value]
        record_changed(
            row,
            actor=_in(row.workspace_id, actor),
            before={name: before[name] for name in told},
            after={name: after[name] for name in told},
        )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _delete(rows: Sequence[ModelProvider], actor: Actor) -> None:
    for row in rows:
        record_deleted(row, actor=_in(row.workspace_id, actor))
    ids = [row.pk for row in rows]
    ModelProvider.objects.across_workspaces().filter(pk__in=ids).delete()


def _used(rows: Sequence[ModelProvider]) -> set[UUID]:
    """Those without which something would have no model, or another one."""
    ids = [row.pk for row in rows]
    buds = Bud.objects.across_workspaces().filter(provider__in=ids)
    chats = Conversation.objects.across_workspaces().filter(chosen_model__provider__in=ids)
    servers = McpServer.objects.across_workspaces().filter(sampling_provider_id__in=ids)
    named: set[UUID | None] = {
        *buds.values_list("provider_id", flat=True),
        *chats.order_by().values_list("chosen_model__provider_id", flat=True).distinct(),
        *servers.values_list("sampling_provider_id", flat=True),
    }
    return {one for one in named if one is not None}


def _in(workspace_id: UUID, actor: Actor) -> Actor:
    """The same person as the log of another workspace names them: they may have no role there."""
    if actor.workspace_id == workspace_id:
        return actor
    return replace(actor, workspace_id=workspace_id, role=None)


def _of_platform(actor: Actor) -> Actor:
    return replace(actor, workspace_id=None, role=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRow:
    """A shared provider in the list."""

    shared: SharedProvider
    workspaces: int
    """That may use it."""


def list_shared(*, actor: Actor) -> list[SharedRow]:
    """All of them, by name.

    Raises:
        PermissionDenied: the actor does not own the platform.
    """
    require_platform_owner(actor)
    is_given = ~Q(given__withheld=Withheld.WITHDRAWN.value)
    with everywhere():
        rows = list(
            SharedProvider.objects.annotate(number=Count("given", filter=is_given)).order_by(
                "name", "pk"
            )
        )
    return [SharedRow(shared=row, workspaces=row.number) for row in rows]
