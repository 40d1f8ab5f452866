"""A body on its way into the log and out of it again."""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from audit.bodies.commitments import KEY_BYTES, commit_to
from audit.models import AuditBody
from workspaces.redaction import LONGEST_SECRET, MASK
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from audit.bodies.masking import MaskedValue, Masking
    from audit.models import AuditEntry

PREVIEW_CHARACTERS: Final = 4_000
"""How much of arguments and results an entry shows by itself."""
_MARGIN: Final = 64 * 1024
"""How far behind what is kept masking still looks, so that no secret is cut before it is recognised."""
_NONCE_BYTES: Final = 12
_write: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedContent:
    """What is kept of arguments or of a result."""

    preview: str = ""
    size_bytes: int | None = None
    """Of the whole, as it was sent or came."""
    commitment: str = ""
    """Keyed, of the whole, before anything was masked or cut."""
    text: str | None = None
    """For the body: masked, up to the workspace's limit."""
    is_cut: bool = False
    marks: tuple[MaskedValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBody:
    """A body as it is read again."""

    arguments: str | None = None
    result: str | None = None
    is_cut: bool = False


def keep(raw: bytes | None, *, root: str, masking: Masking, most_bytes: int) -> RecordedContent:
    """Work out what is kept of a body. Masking by name needs the parsed value, so what does not parse is not shown.

    Args:
        root: "arguments" or "result".
        most_bytes: how much of it the body may hold.
    """
    if raw is None:
        return RecordedContent()
    size, commitment = len(raw), commit_to(raw)
    is_cut = size > most_bytes
    try:
        value = json.loads(raw)
        if is_cut:
            # Far behind what is kept nothing need be masked.
            most = max(most_bytes, PREVIEW_CHARACTERS) + _MARGIN
            value = _shortened(value, most)
            shown, marks = masking.apply(value, root=root)
            shown = _without_ends(shown, value, most)
        else:
            shown, marks = masking.apply(value, root=root)
    except (ValueError, RecursionError):
        return RecordedContent(
            preview=f"(not JSON, {size} bytes)", size_bytes=size, commitment=commitment
        )
    text = _write(shown)
    return RecordedContent(
        preview=_preview(text, size),
        size_bytes=size,
        commitment=commitment,
        text=_beginning(text, most_bytes) if most_bytes else None,
        is_cut=is_cut or len(text.encode("utf-8", "replace")) > most_bytes,
        marks=tuple(marks),
    )


def make_body(
    entry_id: UUID,
    workspace_id: UUID | None,
    *,
    arguments: str | None,
    result: str | None,
    is_cut: bool,
) -> AuditBody | None:
    """Encrypt what is kept under a key of its own; None if there is nothing."""
    if arguments is None and result is None:
        return None
    key = os.urandom(KEY_BYTES)
    return AuditBody(
        entry_id=entry_id,
        workspace_id=workspace_id,
        key=base64.b64encode(key).decode(),
        arguments=_encrypted(arguments, key, entry_id, "arguments"),
        result=_encrypted(result, key, entry_id, "result"),
        is_cut=is_cut,
    )


def read_body(entry: AuditEntry) -> StoredBody | None:
    """Decrypt an entry's body; None if it has none, or none any more.

    Raises:
        SecretUnreadable: its key is gone, or it was altered.
    """
    body = AuditBody.unscoped.filter(entry_id=entry.pk, workspace_id=entry.workspace_id).first()
    if body is None or body.key is None:
        return None
    key = base64.b64decode(body.key.reveal("open a body of the log", is_credential=False))
    return StoredBody(
        arguments=_decrypted(body.arguments, key, entry.pk, "arguments"),
        result=_decrypted(body.result, key, entry.pk, "result"),
        is_cut=body.is_cut,
    )


def clean(text: str) -> str:
    """The text without what a database or a terminal would choke on."""
    if text.isprintable():  # nearly every one is
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


def _preview(text: str, size: int) -> str:
    shown = clean(text[: PREVIEW_CHARACTERS + 1])
    if (
        len(shown) > PREVIEW_CHARACTERS
        or size > len(text.encode("utf-8", "replace")) + PREVIEW_CHARACTERS
    ):
        return f"{shown[:PREVIEW_CHARACTERS]}… (cut, {size} bytes in all)"
    return shown


def _beginning(text: str, most_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


def _shortened(value: Any, most: int) -> Any:
    """The value with long texts and long lists cut, well behind where the kept part ends."""
    if isinstance(value, str):
        return value[: most + 1]
    if isinstance(value, dict):
        return {key: _shortened(item, most) for key, item in list(value.items())[:most]}
    if isinstance(value, list):
        return [_shortened(item, most) for item in value[:most]]
    return value


def _without_ends(shown: Any, cut: Any, most: int) -> Any:
    """The masked value without the ends of texts that were cut: each may be half of a secret.

    What is masked is shorter, so such an end can come before the end of what is kept.
    """
    if isinstance(cut, str):
        return shown[:-LONGEST_SECRET] if len(cut) > most and shown != MASK else shown
    if isinstance(cut, dict) and isinstance(shown, dict):
        pairs = zip(shown.items(), cut.values(), strict=True)
        return {key: _without_ends(item, was, most) for (key, item), was in pairs}
    if isinstance(cut, list) and isinstance(shown, list):
        return [_without_ends(item, was, most) for item, was in zip(shown, cut, strict=True)]
    return shown


def _encrypted(text: str | None, key: bytes, entry_id: UUID, name: str) -> bytes | None:
    if text is None:
        return None
    nonce = os.urandom(_NONCE_BYTES)
    packed = zlib.compress(text.encode("utf-8", "replace"), level=1)
    return nonce + AESGCM(key).encrypt(nonce, packed, _place(entry_id, name))


def _decrypted(
    stored: bytes | memoryview | None, key: bytes, entry_id: UUID, name: str
) -> str | None:
    if stored is None:
        return None
    raw = bytes(stored)
    try:
        packed = AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _place(entry_id, name))
    except InvalidTag as error:
        raise SecretUnreadable(details={"entry": str(entry_id)}) from error
    return zlib.decompress(packed).decode()


def _place(entry_id: UUID, name: str) -> bytes:
    return f"audit:{entry_id}:{name}".encode()
