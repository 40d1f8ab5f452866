"""Why a host could not be reached, from the exceptions of the HTTP library and of the network."""

from __future__ import annotations

import ssl
from enum import StrEnum
from typing import Final

from workspaces.outbound.backend import NameNotFound, NobodyListens
from workspaces.outbound.streams import TlsUnanswered

_MOST_CAUSES: Final = 10


class Unreachable(StrEnum):
    """Why nothing could be sent to a host."""

    NO_NAME = "no_name"
    """Its name could not be looked up."""
    NOBODY_LISTENS = "nobody_listens"
    """The machine is there, and refuses connections to this port."""
    CERTIFICATE = "certificate"
    """Its certificate is not trusted, has run out, or is not of this host."""
    NO_TLS = "no_tls"
    """It does not speak TLS there."""
    TLS_UNANSWERED = "tls_unanswered"
    """It takes connections there, and does not answer when TLS begins."""
    UNKNOWN = "unknown"


def why_unreachable(error: BaseException) -> Unreachable:
    """Read it from an exception and from what caused it."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            break
        if isinstance(cause, NameNotFound):
            return Unreachable.NO_NAME
        if isinstance(cause, NobodyListens | ConnectionRefusedError):
            return Unreachable.NOBODY_LISTENS
        if isinstance(cause, TlsUnanswered):
            return Unreachable.TLS_UNANSWERED
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Unreachable.CERTIFICATE
        if isinstance(cause, ssl.SSLError):
            return Unreachable.NO_TLS
        cause = cause.__cause__ or cause.__context__
    return Unreachable.UNKNOWN
