"""After a restore from a backup: what let people in at the time of the backup may have been taken back since."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.sessions.models import Session
from django.db import transaction

from workspaces.database import database_now
from workspaces.models import Invitation, JoinLink


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedAccess:
    """How many ways in have ended."""

    sessions: int
    invitations: int
    join_links: int


@transaction.atomic
def end_ways_in() -> RevokedAccess:
    """Sign everybody out, and revoke open invitations and join links.

    A backup brings back those that were ended after it was made, and nobody can tell them from the others. People
    sign in again, and admins invite anew. API tokens stay: programs would stand still, and their owners can see them.
    """
    now = database_now()
    sessions = Session.objects.count()
    Session.objects.all().delete()
    invitations = Invitation.objects.across_workspaces().filter(accepted_at=None, revoked_at=None)
    join_links = JoinLink.objects.across_workspaces().filter(revoked_at=None)
    return RevokedAccess(
        sessions=sessions,
        invitations=invitations.filter(expires_at__gt=now).update(revoked_at=now),
        join_links=join_links.filter(expires_at__gt=now).update(revoked_at=now),
    )
