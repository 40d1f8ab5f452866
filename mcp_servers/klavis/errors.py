"""What can go wrong with the provider, in words for people. Texts of the provider are in none of them.

KlavisError(McpServersError)
├── KeyRefused              502  it does not take the key
├── NotThere                404  it does not know the instance
├── NotAccepted             422  it does not take these values
├── TooManyRequests         429  it asks for fewer requests
├── KlavisUnavailable       502  not reached, no answer in time, or a fault of its own
├── KlavisAnswerUnreadable  502  its answer is not what is documented
└── NotOffered              409  this deployment's API cannot do that
"""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from mcp_servers.client.errors import McpServersError


class KlavisError(McpServersError):
    """Root of the provider's failures."""

    code = "klavis_error"
    status = 502
    default_message = _("Klavis could not do that.")


class KeyRefused(KlavisError):
    code = "klavis_key_refused"
    default_message = _("Klavis refused the API key. An administrator has to enter another one.")


class NotThere(KlavisError):
    code = "klavis_not_there"
    status = 404
    default_message = _("Klavis no longer knows this server.")


class NotAccepted(KlavisError):
    code = "klavis_not_accepted"
    status = 422
    default_message = _("Klavis does not accept these values.")


class TooManyRequests(KlavisError):
    """The provider asks for fewer requests.

    Args:
        retry_after_seconds: how long it wants to be left alone, if it says.
    """

    code = "klavis_rate_limited"
    status = 429
    default_message = _("Klavis is receiving too many requests. Try again in a few minutes.")

    def __init__(self, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(details={"retry_after_seconds": retry_after_seconds})
        self.retry_after_seconds = retry_after_seconds


class KlavisUnavailable(KlavisError):
    """Not reached, no answer in time, or a fault of its own.

    Args:
        was_sent: whether the provider may have acted.
    """

    code = "klavis_unavailable"
    default_message = _("Klavis can't be reached right now. Try again in a few minutes.")

    def __init__(self, *, kind: str = "unreachable", was_sent: bool = True) -> None:
        super().__init__(details={"kind": kind})
        self.kind = kind
        self.was_sent = was_sent


class KlavisAnswerUnreadable(KlavisError):
    code = "klavis_unreadable"
    default_message = _("Klavis sent an answer that can't be read. Check the base URL.")


class NotOffered(KlavisError):
    code = "klavis_not_offered"
    status = 409
    default_message = _(
        "The Klavis deployment of this workspace speaks an older API that cannot do that."
    )
