"""Uploaded files: one at a time, counted as it is read, and never unpacked."""

from __future__ import annotations

import errno
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http.multipartparser import MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import DataAndFiles, MultiPartParser

from workspaces.api.parsing import BodyTooLarge, NoRoomForBody
from workspaces.words.text_values import read_whole_number

_MOST_IN_MEMORY: Final = 1024 * 1024


class OneFile(FileUploadHandler):
    """Keeps one file, as long as it is not larger than a file may be; one that is not small on the disk."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.is_too_large = False
        self.files = 0
        self._most_bytes = most_bytes
        self._content = tempfile.SpooledTemporaryFile(max_size=_MOST_IN_MEMORY)  # noqa: SIM115  the file that is given closes it

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.files += 1
        if self.files > 1:
            raise StopUpload(connection_reset=True)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self._content.tell() + len(raw_data) > self._most_bytes:
            self.is_too_large = True
            raise StopUpload(connection_reset=True)
        self._content.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile:
        self._content.seek(0)
        return UploadedFile(
            file=self._content,
            name=self.file_name,
            content_type=self.content_type or "",
            size=file_size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )


class UploadParser(MultiPartParser):
    """``multipart/form-data`` with one file and a few short values."""

    def most_bytes(self) -> int:
        """Of the file."""
        most: int = settings.TRELLIS.artifact_max_bytes
        return most

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> DataAndFiles:
        """Read the body.

        Raises:
            ParseError: it is not such a body, or does not say how long it is.
            BodyTooLarge: the file is larger than the settings allow.
            NoRoomForBody: the disk for temporary files is full.
        """
        context = dict(parser_context or {})
        request = context["request"]
        length = str(request.META.get("CONTENT_LENGTH") or "")
        if read_whole_number(length, most=sys.maxsize) is None:
            raise ParseError("An upload has to say how long it is (Content-Length).")
        handler = OneFile(self.most_bytes())
        request.upload_handlers = [handler]
        try:
            parsed = super().parse(stream, media_type, context)
        except MultiPartParserError as error:
            raise ParseError("The body is not multipart/form-data.") from error
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise NoRoomForBody from error
        if handler.is_too_large:
            raise BodyTooLarge
        if handler.files > 1:
            raise ParseError("One file at a time, please.")
        return parsed


class CopyParser(UploadParser):
    """The same for parts of a copy of somebody's data, which may be larger than other files."""

    def most_bytes(self) -> int:
        return max(super().most_bytes(), settings.TRELLIS.import_max_bytes)
