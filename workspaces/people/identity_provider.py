"""The identity provider of the settings, and whose it is to say who somebody is."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import Q

from workspaces.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """Who says for this installation who somebody is."""

    issuer: str
    name: str
    """What people call it."""
    domains: tuple[str, ...]
    """Mail domains of the people it speaks for, in small letters."""
    is_required: bool
    """Whether these people can sign in with nothing else."""

    def speaks_for(self, email: str) -> bool:
        """Whether somebody with this address is one of its people."""
        return email.rpartition("@")[2].lower() in self.domains


def identity_provider() -> IdentityProvider | None:
    """The provider of the settings. None: people sign in with passwords alone."""
    chosen = settings.TRELLIS
    if chosen.sso_issuer is None:
        return None
    return IdentityProvider(
        issuer=chosen.sso_issuer,
        name=chosen.sso_name or urlsplit(chosen.sso_issuer).netloc,
        domains=chosen.sso_domains,
        is_required=chosen.sso_required,
    )


def people_of(provider: IdentityProvider, *, path: str = "") -> Q:
    """Those whom `provider_instead_of_password` gives a provider that is required.

    Args:
        path: from the rows to their person, such as "user__"; empty: the rows are people.
    """
    known = SocialAccount.objects.filter(provider=provider.issuer).values("user_id")
    theirs = Q(**{f"{path}id__in": known})
    for domain in provider.domains:
        theirs |= Q(**{f"{path}email__iendswith": f"@{domain}"})
    return theirs & Q(**{f"{path}is_superuser": False})


def provider_instead_of_password(user: User) -> IdentityProvider | None:
    """The provider with which this person has to sign in. None: their password lets them in.

    Owners of the platform keep their password: somebody has to get in while the provider is away.
    """
    provider = identity_provider()
    if provider is None or not provider.is_required or user.is_superuser:
        return None
    linked = SocialAccount.objects.filter(user=user, provider=provider.issuer)
    return provider if provider.speaks_for(user.email) or linked.exists() else None
