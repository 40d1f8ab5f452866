"""Single sign-on: people sign in with the identity provider of their organization (OpenID Connect).

The installation's settings name one provider. It speaks for the people of some mail domains, and for nobody else.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction

from workspaces.actors import Actor, Role
from workspaces.changes import record_created
from workspaces.database.row_security import in_workspace
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.people.email_addresses import confirm_address
from workspaces.people.memberships import end_what_was_prepared
from workspaces.people.sessions import end_access
from workspaces.people.tokens import end_token

SIGN_IN: Final = "sso"
"""How the log names this way of signing in."""


def joined_by_all() -> Workspace | None:
    """The workspace that new people of the provider become members of, if there is one that can be entered."""
    slug = settings.TRELLIS.sso_workspace
    return Workspace.objects.filter(slug=slug, is_active=True).first() if slug else None


@transaction.atomic
def join_with_all(*, user: User, actor: Actor) -> Membership | None:
    """Make a new person a member of the workspace for all. None: there is no such workspace."""
    workspace = joined_by_all()
    if workspace is None:
        return None
    with in_workspace(workspace.pk):
        membership: Membership
        membership, created = Membership.unscoped.get_or_create(
            workspace_id=workspace.pk, user=user, defaults={"role": Role.MEMBER.value}
        )
        if created:
            record_created(membership, actor=actor)
    return membership


def forget_at_provider(user: User) -> None:
    """Forget as whom a provider knows the account: whoever has its address there next is its person."""
    SocialAccount.objects.filter(user=user).delete()


@transaction.atomic
def claim_account(*, user_id: UUID, actor: Actor) -> User:
    """Give an account to the person whom the provider knows by its address.

    As long as nobody has answered a mail to the address, anybody may have made the account in that person's name.
    So the password, the second step and the tokens from before let nobody in any more. Accounts that were connected,
    tools that were allowed and servers that were added go, too. An owner of the platform keeps all of it: their
    account was made by whoever holds the machine.
    """
    user = User.objects.select_for_update().get(pk=user_id)
    if user.is_address_confirmed:
        return user
    if not user.is_superuser:
        user.set_unusable_password()
        user.save(update_fields=["password", "updated_at"])
        for step in Authenticator.objects.filter(user=user):
            step.delete()
        for token in ApiToken.objects.across_workspaces().filter(user=user):
            with in_workspace(token.workspace_id):
                end_token(token=token, actor=actor)
        end_what_was_prepared(user, actor=actor)
        end_access(user.pk)
    confirm_address(user)
    return user
