"""Pictures as servers send them."""

from __future__ import annotations

import base64
import io

from PIL import Image


def encoded(image: Image.Image, kind: str, **options: object) -> str:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return base64.b64encode(out.getvalue()).decode()
