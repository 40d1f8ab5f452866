"""Keys of the embedded default: made once, kept in the data folder, readable by their owner only."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkstemp

Keys = Mapping[str, str]
"""Environment variable name → value."""

FILE_NAME = "keys.json"
DATABASE_NAME = "trellis.sqlite3"
_NAMES = ("SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY")


def generate_keys() -> dict[str, str]:
    """Make a fresh, complete set of secrets, as environment variables."""

    def key() -> str:
        return base64.b64encode(secrets.token_bytes(32)).decode()

    def named(kind: str) -> str:
        # Keys stand beside older ones while they are rotated, so their ids differ.
        return f"{kind}{secrets.token_hex(3)}:{key()}"

    return {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "TRELLIS_ENCRYPTION_KEYS": named("k"),
        "TRELLIS_AUDIT_KEY": key(),
        "TRELLIS_AUDIT_SIGNING_KEYS": named("s"),
        "TRELLIS_PUSH_KEYS": named("p"),
    }


def load_or_create_keys(data_dir: Path) -> Keys:
    """Give the data folder's keys, making them at the first call.

    Two processes that start together agree on one set: the file appears whole, and only if there is none.

    A folder with a database and without keys gets none: others would open none of its secrets, and the audit log would go
    on under a key that proves nothing of what it holds.

    Raises:
        OSError: the folder cannot be written, the file cannot be read or understood, or it is missing beside a database.
    """
    path = data_dir / FILE_NAME
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        if _has_content(data_dir / DATABASE_NAME) and not path.exists():
            raise OSError(
                0,
                f"there is a database, but not the {FILE_NAME} that belongs to it. Put it back from where you keep your keys. "
                "If it is lost, see “Lost keys” in docs/operations.md",
            )
        handle, draft = mkstemp(dir=data_dir, prefix=".keys-")  # mkstemp makes it with mode 0600
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(generate_keys(), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first; its keys hold
        finally:
            Path(draft).unlink()
    try:
        loaded = json.loads(path.read_text())
    except ValueError:
        loaded = None
    if not isinstance(loaded, dict) or not all(isinstance(value, str) for value in loaded.values()):
        raise OSError(
            0, "the file with the keys is damaged; put it back from where you keep it", str(path)
        )
    if missing := [name for name in _NAMES if not loaded.get(name)]:
        raise OSError(0, f"the file with the keys has no {', '.join(missing)}", str(path))
    return loaded


def _has_content(database: Path) -> bool:
    try:
        return database.stat().st_size > 0
    except FileNotFoundError:
        return False
