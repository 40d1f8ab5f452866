"""Pictures from elsewhere."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from tests.workspaces.encoded_pictures import encoded
from workspaces.pictures import MAX_SIDE, UnshowablePicture, clean_picture


def opened(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize(
    ("kind", "mime"),
    [("PNG", "image/png"), ("GIF", "image/png"), ("WEBP", "image/png"), ("JPEG", "image/jpeg")],
)
def test_a_sound_picture_keeps_its_look(kind: str, mime: str) -> None:
    """SEC-73: inline images are decoded and encoded anew."""
    picture = clean_picture(encoded(Image.new("RGB", (40, 30), "#3a7"), kind))
    assert picture.mime_type == mime
    shown = opened(picture.data).convert("RGB")
    assert shown.size == (40, 30)
    red, green, blue = shown.tobytes()[:3]
    assert (abs(red - 0x33) < 8, abs(green - 0xAA) < 8, abs(blue - 0x77) < 8) == (True, True, True)


def test_nothing_rides_along() -> None:
    """SEC-73: what is not the picture itself is gone: comments, places, appended documents."""
    note = PngInfo()
    note.add_text("Comment", "https://canary.example/track")
    raw = base64.b64decode(encoded(Image.new("RGBA", (2, 2)), "PNG", pnginfo=note))
    picture = clean_picture(base64.b64encode(raw + b"<script>alert(1)</script>").decode())
    data = base64.b64decode(picture.data)
    assert b"canary" not in data
    assert b"script" not in data


def test_a_large_picture_is_scaled_down() -> None:
    """SEC-73: size-capped."""
    picture = clean_picture(encoded(Image.new("L", (6000, 300)), "PNG"))
    assert max(opened(picture.data).size) == MAX_SIDE


def test_a_bomb_is_not_decoded() -> None:
    """SEC-73: 30000×30000 PNG → no decode beyond the cap."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 6, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\x00" * 100))
        + chunk(b"IEND", b"")
    )
    with pytest.raises(UnshowablePicture):
        clean_picture(base64.b64encode(bomb).decode())


@pytest.mark.parametrize(
    "raw",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        b"",
        b"not a picture",
        b"\x89PNG\r\n\x1a\n",
        b"%PDF-1.4",
        b"BM" + b"\x00" * 60,
    ],
)
def test_what_is_no_picture_of_a_known_kind_is_not_shown(raw: bytes) -> None:
    """SEC-73: an SVG is a document, not a picture."""
    with pytest.raises(UnshowablePicture):
        clean_picture(base64.b64encode(raw).decode())


def test_damaged_base64_is_told_apart() -> None:
    """Half a text is no picture."""
    with pytest.raises(UnshowablePicture):
        clean_picture("a")


def test_a_picture_stands_upright() -> None:
    """REL-1228: a phone notes beside a picture how it was held; that note is gone, so the picture itself is turned."""
    photo = Image.new("RGB", (40, 20), "white")
    photo.paste((200, 0, 0), (0, 0, 20, 20))
    held = Image.Exif()
    held[0x0112] = 6  # turn it a quarter clockwise to see it
    picture = clean_picture(encoded(photo, "JPEG", exif=held, quality=95))
    shown = opened(picture.data)
    assert shown.size == (20, 40)
    at = 3 * (5 * shown.width + 10)
    red, green, _ = shown.tobytes()[at : at + 3]
    assert red > 150 > green
    assert not shown.getexif()


@pytest.mark.parametrize(("kind", "count"), [(5, 1), (10, 1), (7, 4), (13, 2)])
def test_what_is_odd_beside_a_picture_does_not_matter(kind: int, count: int) -> None:
    """REL-1228, SEC-73: a description that is a number, say, which Pillow cannot write again; the picture is turned."""
    entries = (0x0112, 3, 1, 6), (0x010E, kind, count, 8)
    beside = struct.pack("<2sHIH", b"II", 42, 8, len(entries))
    beside += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    photo = Image.new("RGB", (40, 20), "white")
    picture = clean_picture(encoded(photo, "JPEG", exif=b"Exif\0\0" + beside))
    assert opened(picture.data).size == (20, 40)


def test_damaged_data_beside_a_picture_is_left_out() -> None:
    """REL-1606: as browsers do; what the picture itself needs has to be whole."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), "#3a7").save(out, "PNG", pnginfo=_comment())
    raw = out.getvalue()
    at = raw.index(b"tEXt") + 8
    beside = raw[:at] + b"?" + raw[at + 1 :]
    assert clean_picture(base64.b64encode(beside).decode()).pixels == 64
    at = raw.index(b"IHDR") + 6
    with pytest.raises(UnshowablePicture):
        clean_picture(base64.b64encode(raw[:at] + b"?" + raw[at + 1 :]).decode())


def _comment() -> PngInfo:
    info = PngInfo()
    info.add_text("Comment", "drawn by hand")
    return info
