"""What models are given of files: read once, in the background, and kept beside the version."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop as _

from chat.artifacts import storage
from chat.documents.child import MOST_OUTLINE
from chat.documents.extracting import (
    HTML,
    Extracted,
    UnreadableFile,
    extract,
    extract_page,
    is_document,
)
from chat.documents.pictures import ModelPicture, for_model
from chat.files.kinds import (
    FileKind,
    as_text,
    is_broken_document,
    is_text,
    kind_of,
    picture_type,
    text_within,
)
from chat.files.names import ending_of
from chat.models import ArtifactVersion, FileReading
from chat.values import ArtifactOrigin
from workspaces.database import in_database
from workspaces.errors import NotFound

_READ_BY_CONTENT: Final = frozenset(
    ["pdf", "docx", "xlsx", "pptx", "epub", "png", "jpg", "jpeg", "gif", "webp"]
)
"""Endings of files that are read once their content is of that kind."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_LONGEST_HEADING: Final = 200
LONGEST_OVERVIEW = 4_000
"""Characters of what stands for a file that is too long to be sent whole."""
_MOST_TITLES = 60
LONGEST_SOURCE: Final = 20_000
"""Bytes of a page whose markup models read."""
_FROM_ELSEWHERE: Final = (ArtifactOrigin.UPLOAD, ArtifactOrigin.TOOL)


def is_converted(version: ArtifactVersion) -> bool:
    """Whether models read what was made of a file, and not the file: of documents, and of long pages from elsewhere.

    Pages of the web are mostly markup and scripts. In a short page the markup may be what the question is about.
    """
    if version.content_type != HTML:
        return is_document(version.content_type)
    return version.size > LONGEST_SOURCE and version.origin in _FROM_ELSEWHERE


async def read_version(workspace_id: UUID, version_id: UUID) -> FileReading:
    """What a model is given of this version; the first time it is made, which may take some seconds.

    Raises:
        NotFound: there is no such version.
        ContentMissing, StorageUnavailable, NotReadNow: it did not work this time; nothing is kept of that.
    """
    version = await in_database(_fetch, workspace_id, version_id)
    made: FileReading | None = getattr(version, "reading", None)
    if made is not None:
        return made
    return await in_database(_keep, version, await _read(version))


def find_reading(version: ArtifactVersion) -> FileReading | None:
    """What was read of a version, if it has been."""
    return FileReading.objects.for_workspace(version.workspace_id).filter(version=version).first()


def text_of(reading: FileReading) -> str:
    """The whole text of what was read.

    Raises:
        UnreadableFile: there is none.
        ContentMissing: the storage does not have it.
    """
    if not reading.text_path:
        raise UnreadableFile(reading.error or _("This is a picture. It has no text."))
    content = storage.read(reading.text_path)
    text = as_text(content)
    # Of a document, anything may be kept; it is UTF-8.
    return text_within(content) if text is None else text


def overview(reading: FileReading, text: str) -> str:
    """The outline of a text and how it begins."""
    titles = [f"line {line}: {title}" for title, line in reading.outline[:_MOST_TITLES]]
    if len(reading.outline) > _MOST_TITLES:
        titles.append(f"… and {len(reading.outline) - _MOST_TITLES} more")
    outline = "Its parts:\n" + "\n".join(titles) + "\n\n" if titles else ""
    outline = outline[: LONGEST_OVERVIEW // 2]
    cut = "Only its beginning could be read. " if reading.is_cut else ""
    return f"{cut}{outline}How it begins:\n{text[: LONGEST_OVERVIEW - len(outline)]}"


def _fetch(workspace_id: UUID, version_id: UUID) -> ArtifactVersion:
    rows = ArtifactVersion.objects.for_workspace(workspace_id)
    return rows.select_related("artifact", "reading").fetch(version_id)


async def _read(version: ArtifactVersion) -> Extracted | ModelPicture | str:
    """The text or the picture; a sentence says why there is neither."""
    content = await in_database(storage.read, version.path)
    try:
        if not is_converted(version):
            return await asyncio.to_thread(_read_plain, content, version)
        if version.content_type == HTML:
            source: str | None = await asyncio.to_thread(as_text, content)
            return await extract_page(source or "")
        return await extract(content, version.content_type)
    except UnreadableFile as error:
        return error.message


def _read_plain(content: bytes, version: ArtifactVersion) -> Extracted | ModelPicture:
    if kind_of(version.content_type, version.artifact.name) is FileKind.IMAGE:
        return for_model(content)
    text = as_text(content) if is_text(version.content_type) else None
    if text is None:
        if picture_type(content):
            for_model(content)  # says what is wrong with it
        if picture_type(content) or is_broken_document(content):
            raise UnreadableFile(
                _("It is damaged or not complete. Save it again, and attach the new file.")
            )
        if ending_of(version.artifact.name) in _READ_BY_CONTENT:
            raise UnreadableFile(_("It is damaged, or of another kind than its name says."))
        raise UnreadableFile(_("Files of this kind cannot be read."))
    is_markdown = kind_of(version.content_type, version.artifact.name) is FileKind.MARKDOWN
    return Extracted(text=text, outline=tuple(_headings(text)) if is_markdown else ())


def _headings(text: str) -> Iterator[tuple[str, int]]:
    """The headings of Markdown with their lines; what stands in blocks of code is none.

    Source: CommonMark 0.31, sections 4.2 and 4.5.
    """
    fence = ""
    found = 0
    for number, line in enumerate(text.split("\n"), 1):
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        elif (
            not fence
            and (heading := _HEADING.match(line[:_LONGEST_HEADING]))
            and found < MOST_OUTLINE
        ):
            found += 1
            yield heading[1], number


def _keep(version: ArtifactVersion, read: Extracted | ModelPicture | str) -> FileReading:
    row = FileReading(workspace_id=version.workspace_id, version=version)
    stored = None
    if isinstance(read, str):
        row.error = read
    elif isinstance(read, ModelPicture):
        stored = storage.store(version.workspace_id, read.content)
        row.picture_path, row.width, row.height = stored.path, read.width, read.height
    else:
        if is_document(version.content_type):
            stored = storage.store(version.workspace_id, read.text.encode())
        row.text_path = stored.path if stored else version.path
        row.characters, row.lines = len(read.text), read.text.count("\n") + 1
        row.outline, row.is_cut = [list(part) for part in read.outline], read.is_cut
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        # Somebody else has read it meanwhile, or it is gone.
        if stored is not None:
            storage.drop([stored.path])
        made = find_reading(version)
        if made is None:
            raise NotFound(_("This file has been deleted.")) from None
        return made
    return row
