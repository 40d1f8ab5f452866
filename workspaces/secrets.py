"""Secrets at rest and in memory.

At rest a secret is sealed with AES-256-GCM under a named key, and bound to its place: the
associated data holds workspace, model, row and field, so that a ciphertext copied elsewhere does not open. Form: `v1.<key id>.<base64 nonce+text>`.

In memory it is a `Secret`, which shows as a mask everywhere and gives its value only to
`reveal()`. What was revealed is masked from then on in all that is written of its workspace.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.apps import apps
from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.utils.translation import gettext_lazy as _

from workspaces.errors import DomainError
from workspaces.secret_memory import MASK, remember_secret
from workspaces.words.columns import kind_of

_VERSION = "v1"
_NONCE_BYTES = 12
_OPEN_NAMES = frozenset({"header", "username", "client_id"})
"""Stored among credentials, and no secrets: which header carries a key, and who signs in."""


class SecretUnreadable(DomainError):
    """The key is gone, or the ciphertext belongs to another place."""

    code = "secret_unreadable"
    status = 409
    default_message = _(
        "A stored secret cannot be read, because the encryption key that protected it is gone."
        " Put that key back, or enter the secret again."
    )


def primary_key_id() -> str:
    """The id of the key that new secrets are sealed with."""
    return next(iter(_keyring()))


def _keyring() -> Mapping[str, bytes]:
    """Key id → 32 bytes; the first is the primary one, the others only open."""
    return {key.id: key.material for key in settings.TRELLIS.encryption_keys}


def seal(plain: str, *, place: str) -> str:
    """Encrypt a text for one place ("workspace:app.model:row:field")."""
    key_id = primary_key_id()
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(_keyring()[key_id]).encrypt(nonce, plain.encode(), place.encode())
    return f"{_VERSION}.{key_id}.{base64.b64encode(nonce + sealed).decode()}"


def unseal(sealed: str, *, place: str) -> str:
    """Decrypt what `seal` made for the same place.

    Raises:
        SecretUnreadable: unknown key, wrong place, or altered.
    """
    try:
        version, key_id, body = _parts_of(sealed)
        raw = base64.b64decode(body)
        if version != _VERSION:
            raise ValueError(version)
        plain = AESGCM(_keyring()[key_id]).decrypt(
            raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place.encode()
        )
    except (KeyError, ValueError, InvalidTag) as error:
        raise SecretUnreadable(details={"place": place}) from error
    return plain.decode()


def key_id_of(sealed: str) -> str:
    """The id of the key that sealed this text."""
    return _parts_of(sealed)[1]


def _parts_of(sealed: str) -> tuple[str, str, str]:
    """Give version, key id and body. A key's id may have dots.

    Raises:
        ValueError: it is nothing that `seal` made.
    """
    head, _dot, body = sealed.rpartition(".")
    version, dot, key_id = head.partition(".")
    if not dot:
        raise ValueError("not a sealed text")
    return version, key_id, body


class Secret:
    """A secret that never shows itself by accident."""

    __slots__ = ("_place", "_plain", "_sealed")

    def __init__(
        self, plain: str | None = None, *, sealed: str | None = None, place: str | None = None
    ) -> None:
        self._plain = plain
        self._sealed = sealed
        self._place = place

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __bool__(self) -> bool:
        return bool(self._plain or self._sealed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self.sealed == other.sealed and self._plain == other._plain

    __hash__ = None  # type: ignore[assignment]  # a secret is no key of a dict

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled")

    @property
    def sealed(self) -> str | None:
        """The ciphertext as stored, if it has been stored."""
        return self._sealed

    def reveal(self, purpose: str, *, is_credential: bool = True) -> str:
        """The value itself; `purpose` says in the code what it is used for.

        Args:
            is_credential: False for a private text that logs need not be searched for.

        Raises:
            SecretUnreadable: the key is gone or the ciphertext was moved.
        """
        if not purpose:
            raise ValueError("say what the secret is revealed for")
        if self._plain is not None:
            plain = self._plain
        else:
            assert self._sealed is not None
            plain = unseal(self._sealed, place=self._place or "")
        if is_credential:
            self.remember(plain)
        return plain

    def remember(self, plain: str) -> None:
        """Have a part of this secret masked in all that is written of its workspace; the platform's everywhere."""
        owner = (self._place or "").partition(":")[0]
        remember_secret(plain, workspace_id=None if owner in {"", "None"} else owner)

    def is_same(self, plain: str) -> bool:
        """Whether it is that text; not where it cannot be read."""
        try:
            return self.reveal("comparing secrets") == plain
        except SecretUnreadable:
            return False

    def reveal_json(self, purpose: str) -> dict[str, str]:
        """The value of an EncryptedJSONField: names to texts."""
        values: dict[str, str] = json.loads(self.reveal(purpose, is_credential=False))
        for name, value in values.items():
            if name not in _OPEN_NAMES:
                self.remember(value)
        return values

    def settle(self, place: str) -> None:
        """Tell a secret that came from the database where it was read."""
        if self._place is None:
            self._place = place

    def sealed_for(self, place: str) -> str:
        """The ciphertext for that place, sealing what is still plain."""
        if self._plain is not None:
            return seal(self._plain, place=place)
        if self._sealed is None:
            raise ValueError("an empty secret cannot be sealed")
        return self._sealed


def _place_of(field: EncryptedTextField, row: models.Model) -> str:
    workspace_id = getattr(row, "workspace_id", None)
    # A model that came to another app keeps the label under which its rows were sealed.
    label = getattr(row, "secrets_label", row._meta.label_lower)
    return f"{workspace_id}:{label}:{row.pk}:{field.attname}"


class _SecretAttribute:
    """Turns what is assigned into a Secret that knows its place."""

    def __init__(self, field: EncryptedTextField) -> None:
        self.field = field

    def __get__(self, row: models.Model | None, owner: type[models.Model]) -> Any:
        if row is None:
            return self
        if self.field.attname not in row.__dict__:
            row.refresh_from_db(fields=[self.field.attname])
        secret: Secret | None = row.__dict__[self.field.attname]
        if secret is not None:
            secret.settle(_place_of(self.field, row))
        return secret

    def __set__(self, row: models.Model, value: object) -> None:
        if not isinstance(value, Secret):
            value = self.field.as_secret(value)
        row.__dict__[self.field.attname] = value


if TYPE_CHECKING:
    _TextField = models.TextField[Any, Any]
else:
    _TextField = models.TextField  # generic only in the stubs


class EncryptedTextField(_TextField):
    """A text that is encrypted for its row; reads as `Secret`, or None when empty."""

    description = "An encrypted text"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("null", True)
        kwargs.setdefault("blank", True)
        kwargs.setdefault("default", None)
        super().__init__(*args, **kwargs)

    def contribute_to_class(
        self, cls: type[models.Model], name: str, private_only: bool = False
    ) -> None:
        super().contribute_to_class(cls, name, private_only)
        setattr(cls, self.attname, _SecretAttribute(self))

    def as_secret(self, value: object) -> Secret | None:
        """What an assigned plain value becomes."""
        if value is None or value == "":
            return None
        return Secret(str(value))

    def from_db_value(
        self, value: str | None, expression: object, connection: BaseDatabaseWrapper
    ) -> Secret | None:
        return Secret(sealed=value) if value else None

    def to_python(self, value: Any) -> Any:
        return value

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        secret: Secret | None = getattr(model_instance, self.attname)
        if secret is None:
            return None
        place = _place_of(self, model_instance)
        sealed = secret.sealed_for(place)
        setattr(model_instance, self.attname, Secret(sealed=sealed, place=place))
        return sealed

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        # pre_save has sealed it; anything else would store a secret in the clear.
        if isinstance(value, Secret):
            value = value.sealed
        if value is not None and not str(value).startswith(f"{_VERSION}."):
            raise TypeError(f"{self.name} can only be saved through its model instance")
        return super().get_db_prep_save(value, connection)

    def value_to_string(self, obj: models.Model) -> str:
        return MASK


class EncryptedJSONField(EncryptedTextField):
    """Names to texts (headers, environment), encrypted as one JSON text."""

    def as_secret(self, value: object) -> Secret | None:
        if not value:
            return None
        if isinstance(value, Mapping):
            value = json.dumps(dict(value), sort_keys=True)
        return Secret(str(value))


def holds(row: models.Model, name: str, value: object) -> bool:
    """Whether this encrypted field of a row has that value already; not where it cannot be read."""
    field = row._meta.get_field(name)
    assert isinstance(field, EncryptedTextField)
    stored: Secret | None = getattr(row, name)
    given = field.as_secret(value)
    if stored is None or given is None:
        return stored is given
    purpose = "comparing secrets"
    try:
        stored_plain = stored.reveal(purpose, is_credential=False)
    except SecretUnreadable:
        return False
    return stored_plain == given.reveal(purpose, is_credential=False)


def put_secret(row: models.Model, name: str, value: object) -> None:
    """Give an encrypted field of a row a value. The same again is no change, so the log tells of none."""
    if not holds(row, name, value):
        setattr(row, name, value)


def encrypted_fields(model: type[models.Model]) -> list[EncryptedTextField]:
    """The encrypted fields of a model."""
    return [f for f in model._meta.get_fields() if isinstance(f, EncryptedTextField)]


def find_unreadable() -> dict[str, list[str]]:
    """Try one stored secret of each field and key; give what does not open, by key, such as "model provider"."""
    found: dict[str, list[str]] = {}
    for model, field in encrypted():
        for key_id, rows in _by_key(model, field):
            secret: Secret = getattr(rows[0], field.attname)
            try:
                secret.reveal("trying whether it opens", is_credential=False)
            except SecretUnreadable:
                kinds, kind = found.setdefault(key_id, []), kind_of(model)
                kinds += [] if kind in kinds else [kind]
    return found


PUT_BACK: Final = (
    "Put back the keys that they were stored with (TRELLIS_ENCRYPTION_KEYS, or keys.json of the data folder)."
    " They stay as they are until then. If those keys are lost, enter the secrets again."
)


def unreadable_in_words(found: Mapping[str, list[str]]) -> str:
    """What does not open and why, in words."""
    known = _keyring()
    return "stored secrets do not open: " + "; ".join(
        f"those under key {key_id}, which "
        + ("was another key when they were stored" if key_id in known else "is not in the settings")
        + f" ({', '.join(kinds)})"
        for key_id, kinds in found.items()
    )


def unused_in_words() -> str:
    """Which keys can go once every secret is under the primary one; empty: there are no others."""
    unused = [key_id for key_id in _keyring() if key_id != primary_key_id()]
    if not unused:
        return ""
    # Whoever has just put a new one behind the old one must not be told to take either away.
    return (
        f"every stored secret is under {primary_key_id()}; no secret needs {', '.join(unused)}: an old key can be "
        "removed, a new one waits to be put first"
    )


def count_by_key() -> Counter[str]:
    """Count the stored secrets of each key."""
    counts: Counter[str] = Counter()
    for model, field in encrypted():
        for key_id, rows in _by_key(model, field):
            counts[key_id] += rows.count()
    return counts


def encrypted() -> Iterator[tuple[type[models.Model], EncryptedTextField]]:
    """Give every encrypted field with its model."""
    for model in apps.get_models():
        for field in encrypted_fields(model):
            yield model, field


def _by_key(
    model: type[models.Model], field: EncryptedTextField
) -> Iterator[tuple[str, models.QuerySet[models.Model]]]:
    """Give the rows of each key; the database looks for them, so that no other row is read."""
    rest = model._base_manager.exclude(**{f"{field.attname}__isnull": True}).order_by()
    while row := next(iter(rest[:1]), None):
        secret: Secret = getattr(row, field.attname)
        key_id = key_id_of(secret.sealed or "")
        yield key_id, rest.filter(sealed_with(field, key_id))
        rest = rest.exclude(sealed_with(field, key_id))


def sealed_with(field: EncryptedTextField, key_id: str) -> Exact:
    """Give the condition for rows that a key sealed. Ids differ by case, which SQLite's LIKE ignores."""
    head = f"{_VERSION}.{key_id}."
    return Exact(Left(field.attname, len(head)), head)
