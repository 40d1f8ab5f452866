"""E-mail addresses of accounts: each account signs in with one, and another may wait for its mail to be answered."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from workspaces.models import User


def confirm_address(user: User) -> None:
    """Note that the person has answered a mail to the address that they sign in with."""
    if user.keep_address().set_verified():
        user.is_address_confirmed = True


@receiver([post_save, post_delete], sender=EmailAddress)
def follow_address(sender: object, instance: EmailAddress, **kwargs: object) -> None:
    """Keep with the account, which every request reads, whether its address is confirmed."""
    mine = EmailAddress.objects.filter(user=instance.user_id, primary=True, verified=True)
    User.objects.filter(pk=instance.user_id).update(is_address_confirmed=mine.exists())


def is_address_of(user: User, email: str) -> bool:
    """Whether this account may be found by the address: not by one whose mail nobody has answered."""
    email = email.lower()
    if user.email.lower() == email:
        return True
    return bool(EmailAddress.objects.filter(user=user, email=email, verified=True).exists())


def is_taken(email: str) -> bool:
    """Whether an account has this address; waiting for its mail takes no address from anybody."""
    proven = EmailAddress.objects.filter(email=email.lower(), verified=True)
    return User.objects.filter(email__iexact=email).exists() or bool(proven.exists())
