"""What a PDF says."""

from __future__ import annotations

import pypdfium2


def pages_of(body: bytes) -> list[str]:
    """The text of each page, as a reader's program finds it."""
    document = pypdfium2.PdfDocument(body)
    return [page.get_textpage().get_text_bounded().replace("\r\n", "\n") for page in document]
