"""Small pictures as files."""

from __future__ import annotations

import io

from PIL import Image


def picture(form: str = "PNG", size: tuple[int, int] = (4, 4)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "green").save(out, form)
    return out.getvalue()
