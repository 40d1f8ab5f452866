"""The pictures that people give of themselves: small, square, drawn anew, and served by Trellis itself."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput
from workspaces.models import Membership, PersonPicture, User, Workspace
from workspaces.pictures import UnshowablePicture, clean_picture

if TYPE_CHECKING:
    from django.db.models import QuerySet

MOST_BYTES: Final = 10 * 1024 * 1024
"""Of the file that somebody chooses."""
MIME_TYPE: Final = "image/jpeg"
SIDE: Final = 256
"""Points of each side: some four times what is shown at most."""
_QUALITY: Final = 85


@transaction.atomic
def keep_picture(*, user: User, content: bytes) -> User:
    """Have pages show this picture of a person, cut to a square around its middle.

    Raises:
        InvalidInput: it is too large, damaged, or no picture.
    """
    if len(content) > MOST_BYTES:
        raise InvalidInput(fields={"picture": [too_large()]})
    try:
        small = _square(content)
    except UnshowablePicture as error:
        message = _("This picture cannot be shown: %(why)s. Choose a PNG, JPEG, WebP or GIF file.")
        raise InvalidInput(fields={"picture": [message % {"why": error}]}) from error
    PersonPicture.objects.update_or_create(user=user, defaults={"content": small})
    return _note(user, hashlib.sha256(small).hexdigest()[:16])


@transaction.atomic
def remove_picture(*, user: User) -> User:
    """Show the first letter of a person's name again."""
    PersonPicture.objects.filter(user=user).delete()
    return _note(user, "")


def too_large() -> str:
    """What is wrong with a file over the limit."""
    most = MOST_BYTES // (1024 * 1024)
    return _("This file is larger than %(most)s MB. Choose a smaller one.") % {"most": most}


def own_picture(user: User) -> bytes | None:
    """A person's picture; None: they gave none."""
    return _content(PersonPicture.objects.filter(user=user))


def picture_of_member(workspace: Workspace, user_id: UUID) -> bytes | None:
    """The picture of somebody in the workspace; None: they gave none, or are not in it."""
    members = Membership.objects.also_suspended(workspace).values("user_id")
    return _content(PersonPicture.objects.filter(user_id=user_id, user_id__in=members))


def inline_picture(user: User) -> str:
    """A person's picture as an address that holds it; empty: they gave none."""
    content = own_picture(user) if user.picture_digest else None
    return f"data:{MIME_TYPE};base64,{base64.b64encode(content).decode()}" if content else ""


def own_address(user: User) -> str:
    """Where a person finds their own picture; empty: they gave none. It changes with the picture."""
    digest = user.picture_digest
    return f"{reverse('workspaces:picture')}?v={digest}" if digest else ""


def address_for_members(user: User, workspace: Workspace) -> str:
    """Where others of a workspace find a person's picture; empty: they gave none."""
    if not user.picture_digest:
        return ""
    place = reverse("workspaces:member_picture", args=[workspace.slug, user.pk])
    return f"{place}?v={user.picture_digest}"


def _content(pictures: QuerySet[PersonPicture]) -> bytes | None:
    content = pictures.values_list("content", flat=True).first()
    return bytes(content) if content is not None else None


def _note(user: User, digest: str) -> User:
    user.picture_digest = digest
    user.save(update_fields=["picture_digest", "updated_at"])
    return user


def _square(content: bytes) -> bytes:
    clean = clean_picture(base64.b64encode(content).decode())
    from PIL import Image, ImageOps  # heavy, and pictures are given rarely

    with Image.open(io.BytesIO(base64.b64decode(clean.data))) as image:
        fitted = ImageOps.fit(image.convert("RGBA"), (SIDE, SIDE))
    flat = Image.new("RGB", fitted.size, "white")
    flat.paste(fitted, mask=fitted)
    out = io.BytesIO()
    flat.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
