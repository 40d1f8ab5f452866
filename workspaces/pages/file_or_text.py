"""Forms that take a file or its pasted text: one of the two, and nothing of either is dropped silently."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from django.http import HttpRequest

_TEXT, _FILE, _OF_FILE = "text", "file", "text_of_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrText:
    """What such a form has sent. `parts/file_or_text.html` draws its fields."""

    text: str
    """Of the file, or as it was pasted; what stands in the field next time."""
    of_file: str = ""
    """A mark of the text where it came from a file: another file replaces it, unless somebody has changed it."""
    fault: str = ""
    """Why neither can be taken."""

    @property
    def wanted(self) -> str:
        """The text.

        Raises:
            InvalidInput: there is none, or nobody can tell which one was meant.
        """
        if self.fault:
            raise InvalidInput(fields={_FILE: [self.fault]})
        return self.text


def read_file_or_text(request: HttpRequest, *, most_bytes: int) -> FileOrText:
    """Read what was sent; a file with more bytes is cut off, for whoever reads its text to refuse."""
    if request.method != "POST":
        return FileOrText(text="")
    pasted = request.POST.get(_TEXT, "").replace("\x00", "")
    mark = request.POST.get(_OF_FILE, "")
    of_file = mark if mark == _mark_of(pasted) else ""
    upload = request.FILES.get(_FILE)
    if upload is None:
        fault = "" if pasted.strip() else _("Choose a file, or paste its text.")
        return FileOrText(text=pasted, of_file=of_file, fault=fault)
    if pasted.strip() and not of_file:
        fault = _(
            "You chose a file, and there is text in the field as well. Empty the field, or send the text without a file."
        )
        return FileOrText(text=pasted, fault=fault)
    try:
        text = upload.read(most_bytes + 1).decode("utf-8")
    except UnicodeDecodeError:
        return FileOrText(text=pasted, of_file=of_file, fault=_("This file is not UTF-8 text."))
    fault = "" if text.strip() else _("This file is empty.")
    return FileOrText(text=text, of_file=_mark_of(text), fault=fault)


def _mark_of(text: str) -> str:
    """Of the words alone: browsers send other ends of lines, and drop an empty one at the beginning."""
    return hashlib.sha256("\n".join(text.strip().splitlines()).encode()).hexdigest()
