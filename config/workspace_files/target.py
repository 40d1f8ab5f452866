"""Where a file is written or applied, and by whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from workspaces.actors import Actor
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Workspace
from workspaces.secret_memory import MASK


@dataclass(frozen=True, slots=True)
class WorkspaceTarget:
    """A workspace, and who acts in it."""

    workspace: Workspace
    actor: Actor
    notes: list[str] = field(default_factory=list)
    """What people have to know or do besides."""

    @property
    def pk(self) -> UUID:
        return self.workspace.pk


SAME: Final[Mapping[str, str]] = {}


@contextmanager
def faults_at(place: str, names: Mapping[str, str] = SAME) -> Iterator[None]:
    """Tell what is wrong with its place in the file.

    Args:
        names: fields that have another name in the file.

    Raises:
        InvalidInput: as raised inside, with the place before each field.
    """
    try:
        yield
    except InvalidInput as error:
        fields = {
            f"{place}.{names.get(name, name)}".removesuffix("."): texts
            for name, texts in error.fields.items()
        }
        raise InvalidInput(fields=fields or {place: [error.message]}) from error
    except (Conflict, PermissionDenied) as error:
        raise InvalidInput(fields={place: [error.message]}) from error


def stored_or_given(field: str, given: str, written: str | None, stored: str | None) -> str:
    """Give the address that holds from now on: the stored one where the file masks what is secret in it.

    Args:
        written: how the file would have the stored one.

    Raises:
        InvalidInput: the address is masked and none is stored.
    """
    if MASK not in given:
        return given
    if stored is not None and given == written:
        return stored
    raise InvalidInput(fields={field: [_("Replace %(mask)s with the secret.") % {"mask": MASK}]})
