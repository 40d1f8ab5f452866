"""What a refusal of Redis means to the person who runs it, and what they can do about it."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

from config.faults import Fault

_SILENT: Final = Fault(
    text=_("does not answer"),
    advice=_(
        "Start it, and look whether REDIS_URL is right, and begins with rediss:// where it speaks TLS."
    ),
)
_REFUSED: Final = Fault(
    text=_("refuses the user or the password"),
    advice=_("Look whether REDIS_URL is right."),
)
_SHUT_OUT: Final = Fault(
    text=_("lets nobody in from another machine, because it has no password (protected mode)"),
    advice=_("Set a password (requirepass) in Redis, and name it in REDIS_URL."),
)
_RIGHTS: Final = Fault(
    text=_("does not let its user do all that Trellis needs"),
    advice=_("Give the user of REDIS_URL all keys, channels and commands: ~* &* +@all."),
)
_CERTIFICATE: Final = Fault(
    text=_("has a certificate that cannot be trusted, or is another host's"),
    advice=_(
        "Look whether REDIS_URL names the host as the certificate does, and whether this machine trusts its issuer."
    ),
)
_CROWDED: Final = Fault(
    text=_("takes no more connections"),
    advice=_("Raise maxclients in Redis."),
)
_FULL: Final = Fault(
    text=_("takes no writes, because its memory is full"),
    advice=_("Raise maxmemory, or look why tasks pile up."),
)
_REPLICA: Final = Fault(
    text=_("takes no writes, because it is a replica"),
    advice=_("Name the primary in REDIS_URL."),
)
_NO_DISK: Final = Fault(
    text=_("takes no writes, because it cannot store its data"),
    advice=_("Look at the log of Redis, and whether its disk is full."),
)
_LOADING: Final = Fault(
    text=_("is still loading its data"),
    advice=_("Wait until it has."),
)
_OTHER: Final = Fault(
    text=_("refuses what Trellis asks"),
    advice=_("Look at the log of Redis."),
)
_BY_WORDS: Final = (
    (("denied redis is running in protected mode",), _SHUT_OUT),
    (("max number of clients",), _CROWDED),
    (("misconf",), _NO_DISK),
    (("certificate",), _CERTIFICATE),
)


def find_redis_fault(error: BaseException) -> Fault:
    """Say what a refusal means. Its own words are not shown: they may quote what was sent."""
    from redis import exceptions

    words = str(error).lower()
    for parts, fault in _BY_WORDS:
        if any(part in words for part in parts):
            return fault
    for kind, fault in (
        (exceptions.AuthenticationError, _REFUSED),
        (exceptions.NoPermissionError, _RIGHTS),
        (exceptions.OutOfMemoryError, _FULL),
        (exceptions.ReadOnlyError, _REPLICA),
        (exceptions.BusyLoadingError, _LOADING),
        (exceptions.ResponseError, _OTHER),
    ):
        if isinstance(error, kind):
            return fault
    return _SILENT
