"""E-mail addresses of accounts: each account signs in with one, and another may wait for its mail to be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.models import EmailAddress
from django.db import transaction

if TYPE_CHECKING:
    from workspaces.models import User


@transaction.atomic
def keep_address(user: User, *, is_confirmed: bool = False) -> EmailAddress:
    """Give the address that an account signs in with its row, and drop the account's other ones.

    A row that is there keeps what it is: confirmed or not.
    """
    mine, email = EmailAddress.objects.filter(user=user), user.email.lower()
    mine.exclude(email=email).delete()
    row, _ = mine.get_or_create(
        user=user, email=email, defaults={"primary": True, "verified": is_confirmed}
    )
    if not row.primary:
        row.primary = True
        row.save(update_fields=["primary"])
    return row


def is_address_of(user: User, email: str) -> bool:
    """Whether this account may be found by the address: not by one whose mail nobody has answered."""
    email = email.lower()
    if user.email.lower() == email:
        return True
    return bool(EmailAddress.objects.filter(user=user, email=email, verified=True).exists())


def is_taken(email: str) -> bool:
    """Whether an account has this address; waiting for its mail takes no address from anybody."""
    from workspaces.models import User

    proven = EmailAddress.objects.filter(email=email.lower(), verified=True)
    return User.objects.filter(email__iexact=email).exists() or bool(proven.exists())
