"""Model providers: rules that hold whoever saves one, saving one, and what is known of its models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.models import ModelProvider, ProviderModel
from chat.providers.shared import withheld_model
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, InvalidEndpoint, InvalidInput
from workspaces.holding import hold
from workspaces.models import Workspace
from workspaces.outbound import enter_endpoint
from workspaces.roles import Permission, require
from workspaces.secrets import put_secret
from workspaces.words.names import seen_name

LONGEST_KEY: Final = 2_000
NAME_TAKEN: Final = gettext_lazy("Another provider has this name.")


def read_key(text: str) -> str:
    """A key as somebody pasted it, in the form that a request can carry.

    Raises:
        InvalidInput: it is empty or no key, at `api_key`.
    """
    key = text.strip()
    if not key:
        raise InvalidInput(fields={"api_key": [_("Paste the new key.")]})
    if not key.isascii() or not key.isprintable() or len(key) > LONGEST_KEY:
        message = _(
            "This is not an API key. Paste it alone, without spaces or other text around it."
        )
        raise InvalidInput(fields={"api_key": [message]})
    return key


def refuse_for_shared(provider: ModelProvider, field: str) -> None:
    """Have what the platform's owner shares keep what they say of it.

    Raises:
        InvalidInput: it is shared, at the field that somebody wants to change.
    """
    if provider.is_shared:
        message = _("“%(name)s” is shared by the platform, so only the platform's owner sets this.")
        raise InvalidInput(fields={field: [message % {"name": provider.name}]})


def refuse_withheld(provider: ModelProvider, model: str, field: str) -> None:
    """Have a workspace newly choose only what the platform's owner lets it use.

    Raises:
        InvalidInput: this model is another one, at the field that names it.
    """
    if model and not provider.offers(model):
        raise InvalidInput(fields={field: [withheld_model(provider, model).message]})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDraft:
    """What a provider shall be."""

    name: str
    base_url: str
    default_model: str
    is_active: bool = True
    fallback_id: UUID | None = None
    """The provider of the same workspace that answers where this one fails."""
    most_at_once: int | None = None
    most_a_minute: int | None = None
    """Requests; further ones wait. None: no limit."""
    embedding_model: str = ""
    """What finds passages by their meaning; empty: they are found by words only."""
    api_key: str = ""
    """Empty: what is stored stays, as long as the address is of the same origin."""


def prepare_provider(provider: ModelProvider, *, has_new_key: bool) -> None:
    """Before a provider is saved: a key stored for one origin does not follow to another.

    Raises:
        InvalidEndpoint: the base URL is not one that may be called.
    """
    stored = ModelProvider.objects.for_workspace(provider.workspace_id).find(provider.pk)
    if stored is None or stored.base_url != provider.base_url:
        enter_endpoint(provider.base_url)
    if stored is not None and stored.origin != provider.origin and not has_new_key:
        provider.api_key = None


def add_provider(*, workspace: Workspace, draft: ProviderDraft, actor: Actor) -> ModelProvider:
    """Store a new provider.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: with each faulty field, also an address that may not be called.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk)
    provider = ModelProvider(workspace=workspace)
    with transaction.atomic():
        _save(provider, draft)
        record_created(provider, actor=actor)
    return provider


def change_provider(
    *, provider: ModelProvider, draft: ProviderDraft, actor: Actor
) -> ModelProvider:
    """Change a provider. A key goes with it only to addresses of the same origin.

    Raises:
        PermissionDenied, InvalidInput: as above.
        NotFound: it was removed meanwhile.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    with transaction.atomic():
        hold(provider)
        with tracked_change(provider, actor=actor):
            _save(provider, draft)
    return provider


@transaction.atomic
def switch_provider(*, provider: ModelProvider, is_active: bool, actor: Actor) -> ModelProvider:
    """Have buds use a provider, or no longer. One that is shared with the workspace is switched for it alone.

    Raises:
        PermissionDenied: the actor may not manage models.
        NotFound: it was removed meanwhile.
        Conflict: it is so already.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    hold(provider)
    if provider.is_active == is_active:
        message = _("It is switched on already.") if is_active else _("It is switched off already.")
        raise Conflict(message)
    with tracked_change(provider, actor=actor):
        provider.is_active = is_active
        provider.save(update_fields=["is_active", "updated_at"])
    return provider


def _fallback(provider: ModelProvider, draft: ProviderDraft) -> ModelProvider | None:
    if draft.fallback_id is None:
        return None
    found = ModelProvider.objects.for_workspace(provider.workspace_id).find(draft.fallback_id)
    if found is None:
        raise InvalidInput(fields={"fallback": [_("There is no such provider here.")]})
    return found


_OF_THE_PLATFORM: Final = ("name", "base_url", "most_at_once", "most_a_minute")
"""What a workspace does not say of a provider that is shared with it, beside its key."""


def _save_shared(provider: ModelProvider, draft: ProviderDraft) -> None:
    """Save what a workspace says of a provider that is shared with it."""
    for field in _OF_THE_PLATFORM:
        if getattr(draft, field) != getattr(provider, field):
            refuse_for_shared(provider, field)
    if draft.api_key:
        refuse_for_shared(provider, "api_key")
    for field in ("default_model", "embedding_model"):
        wanted = getattr(draft, field).strip()
        if wanted != getattr(provider, field):
            refuse_withheld(provider, wanted, field)
    provider.default_model = draft.default_model.strip()
    provider.is_active = draft.is_active
    provider.fallback = _fallback(provider, draft)
    provider.embedding_model = draft.embedding_model.strip()
    try:
        provider.full_clean(
            exclude=["workspace", "shared", *_OF_THE_PLATFORM],
            validate_unique=False,
            validate_constraints=False,
        )
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    provider.save(
        update_fields=["default_model", "is_active", "fallback", "embedding_model", "updated_at"]
    )


def _save(provider: ModelProvider, draft: ProviderDraft) -> None:
    if provider.is_shared:
        _save_shared(provider, draft)
        return
    provider.name = seen_name(draft.name)
    provider.base_url = draft.base_url.strip()
    provider.default_model = draft.default_model.strip()
    provider.is_active = draft.is_active
    provider.fallback = _fallback(provider, draft)
    provider.most_at_once = draft.most_at_once
    provider.most_a_minute = draft.most_a_minute
    provider.embedding_model = draft.embedding_model.strip()
    if draft.api_key:
        put_secret(provider, "api_key", read_key(draft.api_key))
    try:
        prepare_provider(provider, has_new_key=bool(draft.api_key))
        provider.full_clean(exclude=["workspace"], validate_unique=False)
    except InvalidEndpoint as error:
        raise InvalidInput(fields={"base_url": [error.message]}) from error
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    others = ModelProvider.objects.for_workspace(provider.workspace_id).exclude(pk=provider.pk)
    taken = InvalidInput(fields={"name": [NAME_TAKEN]})
    if others.filter(name=provider.name).exists():
        raise taken
    try:
        with transaction.atomic():
            provider.save()
    except IntegrityError as error:  # somebody took the name at the same moment
        raise taken from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDraft:
    """What shall be known of a model; None where nobody says. Prices are per million tokens."""

    context_tokens: int | None
    prompt_price: Decimal | None
    cached_price: Decimal | None
    completion_price: Decimal | None
    sees_pictures: bool | None
    calls_tools: bool | None
    reasons: bool | None
    """Of these three: what an administrator says; None: as it was found."""


def describe_model(*, provider: ModelProvider, name: str, draft: ModelDraft, actor: Actor) -> None:
    """Store what is known of a provider's model, in the place of what was known.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: with each faulty field.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    refuse_withheld(provider, name, "model")
    rows = ProviderModel.objects.for_workspace(provider.workspace_id)
    with transaction.atomic():
        row = rows.filter(provider=provider, model=name).select_for_update().first()
        if row is not None:
            with tracked_change(row, actor=actor):
                _describe(row, draft)
            return
        made = ProviderModel(workspace_id=provider.workspace_id, provider=provider, model=name)
        _describe(made, draft)
        record_created(made, actor=actor)


def _describe(row: ProviderModel, draft: ModelDraft) -> None:
    for name, value in asdict(draft).items():
        setattr(row, name, value)
    try:
        row.full_clean(exclude=["workspace", "provider"], validate_unique=False)
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    row.save()
