"""What a refusal of Redis means to the person who runs it, and what they can do about it."""

from __future__ import annotations

from typing import Final

from config.faults import Fault

_SILENT: Final = Fault(
    text="does not answer",
    advice="Start it, and look whether REDIS_URL is right, and begins with rediss:// where it speaks TLS.",
)
_REFUSED: Final = Fault(
    text="refuses the user or the password",
    advice="Look whether REDIS_URL is right.",
)
_SHUT_OUT: Final = Fault(
    text="lets nobody in from another machine, because it has no password (protected mode)",
    advice="Set a password (requirepass) in Redis, and name it in REDIS_URL.",
)
_RIGHTS: Final = Fault(
    text="does not let its user do all that Trellis needs",
    advice="Give the user of REDIS_URL all keys, channels and commands: ~* &* +@all.",
)
_CERTIFICATE: Final = Fault(
    text="has a certificate that cannot be trusted, or is another host's",
    advice="Look whether REDIS_URL names the host as the certificate does, and whether this machine trusts its issuer.",
)
_CROWDED: Final = Fault(
    text="takes no more connections",
    advice="Raise maxclients in Redis.",
)
_FULL: Final = Fault(
    text="takes no writes, because its memory is full",
    advice="Raise maxmemory, or look why tasks pile up.",
)
_REPLICA: Final = Fault(
    text="takes no writes, because it is a replica",
    advice="Name the primary in REDIS_URL.",
)
_NO_DISK: Final = Fault(
    text="takes no writes, because it cannot store its data",
    advice="Look at the log of Redis, and whether its disk is full.",
)
_LOADING: Final = Fault(
    text="is still loading its data",
    advice="Wait until it has.",
)
_OTHER: Final = Fault(
    text="refuses what Trellis asks",
    advice="Look at the log of Redis.",
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
