"""Pictures from elsewhere, made fit to be shown: decoded within bounds and encoded anew, so that nothing else rides along."""

from __future__ import annotations

import base64
import binascii
import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from PIL import Image


MAX_PIXELS: Final = 25_000_000
MAX_SIDE: Final = 2_048
"""Longer sides are scaled down to this."""

# What browsers show and the library decodes itself. SVG is a document with scripts and links, and is none of them.
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_QUALITY: Final = 88
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class UnshowablePicture(ValueError):
    """A picture that is not shown, with the reason in plain words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An encoded picture."""

    mime_type: str
    data: str
    """Base64."""
    pixels: int
    """How many points had to be decoded."""


_DAMAGED: Final = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    TypeError,
    AttributeError,
    struct.error,
)
"""What Pillow raises where a picture, or what stands beside it, is not what it says."""


def clean_picture(data: str, *, max_pixels: int = MAX_PIXELS) -> Picture:
    """Decode a base64 picture and encode it anew. Takes up to some hundred milliseconds: not for an event loop.

    Raises:
        UnshowablePicture: damaged, too large, or of a kind that is not shown.
    """
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnshowablePicture(_("it is damaged")) from error
    from PIL import Image, UnidentifiedImageError  # heavy, and few results hold pictures

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(_without_broken_asides(raw)), formats=_FORMATS) as image:
                return _encode(image, max_pixels)
    except UnshowablePicture:
        raise
    except UnidentifiedImageError as error:
        raise UnshowablePicture(_("it is of no known kind")) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnshowablePicture(_too_many()) from error
    except (*_DAMAGED, MemoryError) as error:
        raise UnshowablePicture(_("it is damaged")) from error


def _without_broken_asides(raw: bytes) -> bytes:
    """Leave out what stands beside a PNG's picture where its checksum is wrong, as browsers do; Pillow gives all up.

    PNG specification, 5.4: a small first letter marks a chunk that the picture can be shown without.
    """
    if not raw.startswith(_PNG):
        return raw
    kept, at = [_PNG], len(_PNG)
    while at + 12 <= len(raw):
        end = at + 12 + int.from_bytes(raw[at : at + 4], "big")
        chunk = raw[at:end]
        if not chunk[4] & 0x20 or zlib.crc32(chunk[4:-4]).to_bytes(4, "big") == chunk[-4:]:
            kept.append(chunk)
        at = end
    return b"".join(kept)


def _too_many() -> str:
    return _("it has more than %(most)s million pixels") % {"most": MAX_PIXELS // 1_000_000}


def _encode(image: Image.Image, max_pixels: int) -> Picture:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnshowablePicture(_too_many())
    if width * height > max_pixels:
        raise UnshowablePicture(_("the pictures of this result are too large together"))
    image.draft("RGB", (MAX_SIDE, MAX_SIDE))
    image.load()
    is_photo = image.format == "JPEG"
    plain = _upright(image).convert("RGB" if is_photo else "RGBA")
    plain.thumbnail((MAX_SIDE, MAX_SIDE))
    out = io.BytesIO()
    if is_photo:
        plain.save(out, "JPEG", quality=_QUALITY)
    else:
        plain.save(out, "PNG")
    return Picture(
        mime_type="image/jpeg" if is_photo else "image/png",
        data=base64.b64encode(out.getvalue()).decode(),
        pixels=width * height,
    )


def _upright(image: Image.Image) -> Image.Image:
    """As it was meant to be seen: a phone writes how it was held beside its pictures, which is lost here.

    Pillow's `exif_transpose` would write all that stands beside the picture anew, and fails with whatever is odd in it.
    """
    from PIL import ExifTags, Image

    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
    held = image.getexif().get(ExifTags.Base.Orientation)
    turn = turns.get(held) if isinstance(held, int) else None
    return image if turn is None else image.transpose(turn)
