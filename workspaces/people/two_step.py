"""Two-step verification: after the password, a code of an app, a passkey, or one of the person's recovery codes.

allauth asks for the code and counts wrong ones. Its secrets are rows of ours, sealed like all other secrets.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Source
from workspaces.changes import tracked_change
from workspaces.database import after_commit
from workspaces.delivery.mails import compose, public_url
from workspaces.errors import Conflict
from workspaces.models import TwoStepSecret, User
from workspaces.roles import require_person, require_platform_owner
from workspaces.secrets import Secret, SecretUnreadable
from workspaces.words.formats import written_for

_NAMES: Final = ("secret", "seed")
"""Where allauth's rows keep what they had encrypted: the app's key, and what recovery codes are made of."""


def keep_secret(*, user: User, plain: str) -> UUID:
    """Seal a secret of the person's second step, and give the id to read it by."""
    return TwoStepSecret.objects.create(user=user, secret=plain).pk


def read_secret(*, user_id: UUID, kept: str) -> str:
    """Give what `keep_secret` has sealed for this person.

    Raises:
        SecretUnreadable: the key is gone, or the row is gone or somebody else's.
    """
    row = TwoStepSecret.objects.filter(pk=kept, user=user_id).first()
    secret: Secret | None = row.secret if row is not None else None
    if secret is None:
        raise SecretUnreadable
    return secret.reveal("checking a code of somebody who signs in", is_credential=False)


@receiver([post_save, post_delete], sender=Authenticator)
def follow_step(sender: object, instance: Authenticator, **kwargs: object) -> None:
    """Keep with the account whether it has the second step."""
    steps = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    mine = Authenticator.objects.filter(user=instance.user_id, type__in=steps)
    User.objects.filter(pk=instance.user_id).update(has_two_steps=mine.exists())


@receiver(post_delete, sender=Authenticator)
def forget_secrets(sender: object, instance: Authenticator, **kwargs: object) -> None:
    """Let a secret go with the step that it was for."""
    kept = [instance.data[name] for name in _NAMES if name in instance.data]
    TwoStepSecret.objects.filter(pk__in=kept).delete()


def turn_off_two_steps(*, account: User, actor: Actor) -> User:
    """Let somebody who has lost their phone and their recovery codes sign in with the password alone. They get a mail.

    Their passkeys end with the rest: nobody knows who has the device.

    Raises:
        PermissionDenied: the actor does not own the platform, or is a program.
        Conflict: it is off already.
    """
    require_platform_owner(actor)
    require_person(actor)
    return _turn_off(account, actor)


def turn_off_two_steps_at_machine(*, account: User, who: str) -> User:
    """The same by a command. Whoever runs it has all of the installation in their hands.

    Args:
        who: runs it, as the machine knows them.

    Raises:
        Conflict: it is off already.
    """
    actor = Actor.system(label=who, source=Source.COMMAND, workspace_id=None)
    return _turn_off(account, actor)


@transaction.atomic
def _turn_off(account: User, actor: Actor) -> User:
    held = User.objects.select_for_update().get(pk=account.pk)
    if not held.has_two_steps:
        raise Conflict(_("%(email)s has no two-step verification.") % {"email": held.email})
    with tracked_change(held, actor=actor):
        Authenticator.objects.filter(user=held).delete()
        held.refresh_from_db(fields=["has_two_steps"])
    after_commit(_send_mail, held)
    return held


def _send_mail(account: User) -> None:
    with written_for(account):
        compose(
            subject=_("Trellis: Two-step verification was turned off"),
            text=render_to_string(
                "workspaces/email/two_step_off.txt", {"settings": public_url("/accounts/2fa/")}
            ),
            to=[account.email],
            headers={"Auto-Submitted": "auto-generated"},
        ).send()
