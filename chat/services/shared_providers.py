"""Model providers that the platform's owner shares with workspaces: adding one, giving it, and taking it back.

A workspace gets a `ModelProvider` of its own, which buds, chats, prices and usage name like any other. What is taken
back stays there, switched off, for as long as something uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.models import OfferedModels, SharedProvider, WithheldReason
from chat.providers.specs import trial_spec_of
from chat.services.given_providers import (
    change_rows,
    delete_rows,
    follow_offer,
    give_to,
    give_to_rest,
    given_rows,
    holding,
    state_when_given,
    tell_workspaces,
    used_among,
)
from chat.services.parts_of_shared import read_model_names
from chat.services.provider_check import prove_key
from chat.services.providers import read_key
from workspaces.actors import Actor
from workspaces.changes import (
    ConfigurationChange,
    configuration_changed,
    record_created,
    record_deleted,
    tracked_change,
)
from workspaces.database.row_security import everywhere
from workspaces.errors import (
    Conflict,
    InvalidEndpoint,
    InvalidInput,
)
from workspaces.models import Workspace
from workspaces.outbound import HTTP_SCHEMES, parse_endpoint
from workspaces.roles import require_person, require_platform_owner
from workspaces.secrets import put_secret
from workspaces.words.names import seen_name

_BEHIND: Final = ("base_url", "api_key", "most_at_once", "most_a_minute")
"""What workspaces are told of only that it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDraft:
    """What a shared provider shall be."""

    name: str
    base_url: str
    default_model: str
    is_for_all: bool = False
    offer: str = OfferedModels.ALL.value
    chosen_models: Sequence[str] = ()
    """What workspaces may use if the offer is `CHOSEN`; the default model is one of them."""
    most_at_once: int | None = None
    most_a_minute: int | None = None
    """Requests of all workspaces together; further ones wait. None: no limit."""
    api_key: str = ""
    """Empty: what is stored stays, as long as the address is of the same origin."""


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
            give_to_rest(shared, actor)
    return shared


def change_shared_provider(
    *, shared: SharedProvider, draft: SharedDraft, actor: Actor, is_tested: bool = True
) -> SharedProvider:
    """Change it for every workspace that has it. A new key is tried first, and answers under way end with the old one.

    A key goes with it only to addresses of the same origin.

    Args:
        shared: as whoever changes it has seen it.

    Raises:
        PermissionDenied, InvalidInput, ProviderKeyUntested: as above. No token sends workspaces to another address.
        Conflict: somebody else changed it meanwhile.
        NotFound: somebody else deleted it.
    """
    require_platform_owner(actor)
    if draft.base_url.strip() != shared.base_url:
        require_person(actor)
    if draft.api_key:
        wanted = SharedProvider(pk=shared.pk)
        _put(wanted, draft)
        _refuse_same_key(shared, wanted)
        if is_tested:
            prove_key(trial_spec_of(wanted))
    with holding(shared) as stored:
        if stored.updated_at != shared.updated_at:
            message = _(
                "Somebody else changed this provider meanwhile. Look at it, and save again."
            )
            raise Conflict(message)
        old = {name: getattr(stored, name) for name in ("name", "default_model", *_BEHIND)}
        with tracked_change(stored, actor=_of_platform(actor)):
            _put(stored, draft)
            _save(stored)
        behind = [name for name in _BEHIND if getattr(stored, name) != old[name]]
        tell_workspaces(stored, old, behind, actor)
        follow_offer(stored, actor)
        if stored.is_for_all:
            give_to_rest(stored, actor)
    return stored


def switch_shared_provider(*, shared: SharedProvider, is_active: bool, actor: Actor) -> None:
    """Switch it on or off for every workspace that has it. Answers under way go on.

    Raises:
        PermissionDenied: the actor does not own the platform.
        NotFound: somebody else deleted it.
    """
    require_platform_owner(actor)
    before, after = WithheldReason.SWITCHED_OFF, WithheldReason.NO
    if not is_active:
        before, after = after, before
    with holding(shared) as stored:
        with tracked_change(stored, actor=_of_platform(actor)):
            stored.is_active = is_active
            stored.save(update_fields=["is_active", "updated_at"])
        change_rows(given_rows(stored).filter(withheld=before.value), actor, withheld=after.value)


def give_provider(*, shared: SharedProvider, workspace: Workspace, actor: Actor) -> None:
    """Let a workspace use it; nothing changes where it may already.

    Raises:
        PermissionDenied, NotFound: as above.
    """
    require_platform_owner(actor)
    with holding(shared) as stored:
        row = given_rows(stored).filter(workspace=workspace).first()
        if row is None:
            give_to(stored, [workspace.pk], actor)
        elif row.withheld == WithheldReason.WITHDRAWN:
            change_rows([row], actor, withheld=state_when_given(stored).value)


def withdraw_provider(*, shared: SharedProvider, workspace: Workspace, actor: Actor) -> None:
    """Take it from a workspace. Buds and chats that use it stay, and cannot be answered until they get another model.

    Raises:
        PermissionDenied, NotFound: as above.
        Conflict: it is for every workspace.
    """
    require_platform_owner(actor)
    with holding(shared) as stored:
        if stored.is_for_all:
            message = _("This provider is for every workspace. Share it with chosen ones first.")
            raise Conflict(message)
        row = given_rows(stored).filter(workspace=workspace).select_for_update().first()
        if row is None or row.withheld == WithheldReason.WITHDRAWN:
            return
        if used_among([row]):
            change_rows([row], actor, withheld=WithheldReason.WITHDRAWN.value)
        else:
            delete_rows([row], actor)


def delete_shared_provider(*, shared: SharedProvider, actor: Actor) -> None:
    """Delete it with its key.

    Where a workspace uses it, a provider of the same name stays for its buds and chats: switched off, the workspace's
    own from now on, and without address and key.

    Raises:
        PermissionDenied, NotFound: as above.
    """
    require_platform_owner(actor)
    with holding(shared) as stored:
        rows = list(given_rows(stored).select_for_update())
        used = used_among(rows)
        left = [row for row in rows if row.pk in used]
        change_rows(
            left,
            actor,
            shared_id=None,
            withheld=WithheldReason.NO.value,
            is_active=False,
            offered_models=None,
            has_own_offer=False,
            most_at_once=None,
            most_a_minute=None,
            most_cost_a_month=None,
            most_tokens_a_month=None,
        )
        delete_rows([row for row in rows if row.pk not in used], actor)
        record_deleted(stored, actor=_of_platform(actor))
        stored.delete()


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
                give_to(shared, [change.workspace_id], change.actor)


def _put(shared: SharedProvider, draft: SharedDraft) -> None:
    """Take over what the draft says.

    Raises:
        InvalidInput: with each faulty field.
    """
    origin = shared.origin
    shared.name = seen_name(draft.name)
    shared.base_url = draft.base_url.strip()
    shared.default_model = draft.default_model.strip()
    shared.is_for_all = draft.is_for_all
    shared.offer = draft.offer
    shared.chosen_models = _chosen_models(draft)
    shared.most_at_once = draft.most_at_once
    shared.most_a_minute = draft.most_a_minute
    try:
        parse_endpoint(shared.base_url, schemes=HTTP_SCHEMES)
        if draft.api_key:
            put_secret(shared, "api_key", read_key(draft.api_key))
        elif shared.origin != origin:
            shared.api_key = None
        shared.full_clean(validate_unique=False, validate_constraints=False)
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"base_url": [error.message]}) from error
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error


def offer_of_draft(draft: SharedDraft) -> list[str] | None:
    """The models that workspaces could use by this draft; None: every one.

    Raises:
        InvalidInput: the chosen models are faulty.
    """
    default = draft.default_model.strip()
    wanted = SharedProvider(
        offer=draft.offer, default_model=default, chosen_models=_chosen_models(draft)
    )
    return wanted.offered_models


def _chosen_models(draft: SharedDraft) -> list[str]:
    """The names that a draft chooses.

    Raises:
        InvalidInput: there are none, they are no names, or the default model is not one of them.
    """
    if draft.offer != OfferedModels.CHOSEN:
        return []
    names = read_model_names(draft.chosen_models)
    default = draft.default_model.strip()
    if default not in names:
        message = _("Workspaces need the default model “%(model)s”, too. Add it, or change it.")
        raise InvalidInput(fields={"chosen_models": [message % {"model": default}]})
    return names


def _refuse_same_key(stored: SharedProvider, wanted: SharedProvider) -> None:
    """Whoever pastes the old key by mistake would believe that it was changed."""
    if not stored.api_key or not wanted.api_key or stored.origin != wanted.origin:
        return
    if stored.api_key.is_same(wanted.api_key.reveal("comparing keys")):
        message = _(
            "This key is stored already. Make a new one at the provider, and paste it here."
        )
        raise InvalidInput(fields={"api_key": [message]})


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


def _of_platform(actor: Actor) -> Actor:
    return replace(actor, workspace_id=None, role=None)
