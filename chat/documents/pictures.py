"""Pictures as models get them: of bounded size, encoded anew, without what else rode along."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext_noop as _

from chat.documents.extracting import UnreadableFile
from workspaces.pictures import UnshowablePicture, clean_picture

MOST_SIDE: Final = 1_568
"""Points. Providers scale larger pictures down to about this."""
MIME_TYPE: Final = "image/jpeg"
_QUALITY: Final = 85
_POINTS_A_TOKEN: Final = 750


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPicture:
    """A picture as JPEG."""

    content: bytes
    width: int
    height: int


def for_model(content: bytes) -> ModelPicture:
    """The picture, fit for a model. Takes up to some hundred milliseconds: not for an event loop.

    Raises:
        UnreadableFile: it is damaged or too large.
    """
    try:
        clean = clean_picture(base64.b64encode(content).decode())
    except UnshowablePicture as error:
        raise UnreadableFile(
            _("This picture cannot be read: %(error)s.") % {"error": error}
        ) from error
    from PIL import Image  # heavy, and few conversations hold pictures

    with Image.open(io.BytesIO(base64.b64decode(clean.data))) as image:
        image.thumbnail((MOST_SIDE, MOST_SIDE))
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image if image.mode == "RGBA" else None)
    out = io.BytesIO()
    flat.save(out, "JPEG", quality=_QUALITY)
    return ModelPicture(content=out.getvalue(), width=flat.width, height=flat.height)


def tokens_of(width: int, height: int) -> int:
    """About how many tokens a model reads it as."""
    return max(85, width * height // _POINTS_A_TOKEN)
