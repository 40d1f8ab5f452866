"""Forms in sections, with what few people need folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from django import forms
from django.utils.functional import Promise

from workspaces.pages.secret_fields import AsksForSecretsAgain


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSection:
    """Which fields stand under one heading."""

    title: str | Promise
    names: tuple[str, ...]
    help: str | Promise = ""
    is_folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSection:
    """A section with the fields that the form has of it."""

    title: str | Promise
    help: str | Promise
    fields: list[forms.BoundField]
    is_folded: bool
    is_open: bool
    """Folded, and open nevertheless: a field in it has an error."""


class SectionedForm(AsksForSecretsAgain, forms.Form):
    """A form whose page shows its fields under headings."""

    SECTIONS: ClassVar[Sequence[FormSection]] = ()

    def sections(self) -> list[ShownSection]:
        """The sections that have a field."""
        return self.shown(self.SECTIONS)

    def shown(self, sections: Sequence[FormSection]) -> list[ShownSection]:
        """These sections, as far as the form has fields of them."""
        found = []
        for section in sections:
            fields = [self[name] for name in section.names if name in self.fields]
            if fields:
                found.append(
                    ShownSection(
                        title=section.title,
                        help=section.help,
                        fields=fields,
                        is_folded=section.is_folded,
                        is_open=any(field.errors for field in fields),
                    )
                )
        return found
