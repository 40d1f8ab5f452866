"""Errors of services as Django's forms expect them."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ValidationError

from workspaces.errors import DomainError, InvalidInput


def as_form_errors(check: Callable[[], object]) -> None:
    """Make a check, and tell a form which of its fields are wrong.

    Raises:
        ValidationError: by field, where the check names fields.
    """
    try:
        check()
    except InvalidInput as error:
        raise ValidationError(
            {_form_field(name): texts for name, texts in error.fields.items()}
        ) from error
    except DomainError as error:
        raise ValidationError(error.message) from error


def _form_field(name: str) -> str:
    return name.partition(".")[0]
