"""E-mail addresses that people type or paste: how each is stored, and whether mail can be sent to it."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from workspaces.words.names import without_unseen

LONGEST: Final = 254
"""As in RFC 5321, and as the columns."""


def typed_address(text: str) -> str:
    """An address in small letters, without what nobody sees: pages and mails that it is copied from hold such marks."""
    return without_unseen(text).strip().lower()


def is_mail_address(address: str) -> bool:
    """Whether mail can be sent to it: also the domain has a form that mail servers take."""
    if len(address) > LONGEST:
        return False
    try:
        validate_email(address)
        mailbox, _at, domain = address.rpartition("@")
        # The validator takes domains that cannot be encoded, so that sending would raise.
        domain.encode("idna")
    except (ValidationError, UnicodeError):
        return False
    return mailbox.isascii()
