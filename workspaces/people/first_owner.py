"""The first account of an installation: whoever reads the server's console owns the platform.

The link names the installation and is signed. It opens as long as there is no platform owner, so it works once, and no
state has to be kept for it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Source
from workspaces.changes import record_created
from workspaces.errors import InvalidInput, NotFound
from workspaces.models import Installation, User, Workspace
from workspaces.people.services import create_workspace
from workspaces.restore_detection import held_installation
from workspaces.words.names import seen_name

LIFE: Final = timedelta(days=7)
_SALT: Final = "workspaces.first_owner"
_SLUG: Final = "team"


def setup_path() -> str | None:
    """The path of the page that makes the first account; None: there is a platform owner already."""
    if _has_owner():
        return None
    token = signing.dumps({"installation": _installation().pk.hex}, salt=_SALT)
    return reverse("workspaces:open_setup", args=[token])


def check(token: str) -> None:
    """Raise NotFound unless this link still opens."""
    if not _is_ours(token) or _has_owner():
        raise NotFound(
            _("This link no longer works. Sign in, or start Trellis again for a new one.")
        )


def make_first_owner(
    token: str, *, email: str, name: str, password: str, workspace_name: str
) -> tuple[User, Workspace]:
    """Make the platform's owner, and the first workspace, which they own too.

    Raises:
        NotFound: the link no longer opens; somebody may have been quicker.
        InvalidInput: the password is too weak, or the workspace's name cannot be used.
    """
    actor = Actor.system(label="first start", source=Source.WEB, workspace_id=None)
    with transaction.atomic():
        # Of two people with the same link one comes first, and the other hears of it.
        held_installation()
        check(token)
        user = User(email=email.lower(), name=seen_name(name))
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise InvalidInput(fields={"password": error.messages}) from error
        user.set_password(password)
        user.is_superuser = True
        user.save()
        record_created(user, actor=actor)
        slug = slugify(workspace_name)[:40].strip("-") or _SLUG
        workspace = create_workspace(name=workspace_name, slug=slug, owner=user, actor=actor)
    return user, workspace


def _is_ours(token: str) -> bool:
    try:
        named = signing.loads(token, salt=_SALT, max_age=LIFE)
    except signing.BadSignature:
        return False
    return bool(named == {"installation": _installation().pk.hex})


def _has_owner() -> bool:
    return User.objects.filter(is_superuser=True).exists()


def _installation() -> Installation:
    found = Installation.objects.first()
    if found is None:
        with transaction.atomic():
            found = held_installation()
    return found
