"""The owner of the platform, as services see them."""

from __future__ import annotations

from workspaces.actors import Actor, ActorKind, Source
from workspaces.models import User


def owns(person: User) -> Actor:
    return Actor(
        kind=ActorKind.USER,
        label=person.email,
        source=Source.WEB,
        user_id=person.pk,
        is_superuser=True,
    )
