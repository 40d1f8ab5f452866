"""Why a sign-in did not succeed: a fixed vocabulary, each with its words for people. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from mcp_servers.client.errors import McpServersError


class Reason(StrEnum):
    """What went wrong."""

    NOT_NEEDED = "not_needed"
    SWITCHED_OFF = "switched_off"
    UNREACHABLE = "unreachable"
    NO_METADATA = "no_metadata"
    INSECURE_URL = "insecure_url"
    OTHER_RESOURCE = "other_resource"
    ISSUER_MISMATCH = "issuer_mismatch"
    ISSUER_CHANGED = "issuer_changed"
    NO_PKCE = "no_pkce"
    NO_CLIENT = "no_client"
    REGISTRATION_REFUSED = "registration_refused"
    UNUSABLE_CLIENT = "unusable_client"
    UNKNOWN_STATE = "unknown_state"
    OTHER_PERSON = "other_person"
    OTHER_BROWSER = "other_browser"
    EXPIRED = "expired"
    CHANGED = "changed"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    SCOPE_REFUSED = "scope_refused"
    NO_CODE = "no_code"
    TOKEN_REFUSED = "token_refused"  # noqa: S105 - a word, no secret
    CLIENT_REFUSED = "client_refused"
    CLIENT_NOT_ALLOWED = "client_not_allowed"
    REGISTRATION_UNKNOWN = "registration_unknown"
    TOKEN_UNREADABLE = "token_unreadable"  # noqa: S105 - a word, no secret
    ISSUER_FAILED = "issuer_failed"


WORDS: Final[dict[Reason, str]] = {
    Reason.NOT_NEEDED: _("This server does not use sign-in."),
    Reason.SWITCHED_OFF: _("This server is switched off."),
    Reason.UNREACHABLE: _(
        "The server or its sign-in service could not be reached. Please try again in a moment."
    ),
    Reason.NO_METADATA: _(
        "The server does not say where people sign in to it. Its address may be wrong, or it needs a"
        " token that somebody enters."
    ),
    Reason.INSECURE_URL: _(
        "The server's sign-in service has an address that is not secure, so nothing was sent there."
    ),
    Reason.OTHER_RESOURCE: _("The server identifies itself as another one. Check its address."),
    Reason.ISSUER_MISMATCH: _(
        "The sign-in service gives itself another name than the one it was reached under, so the"
        " sign-in was stopped."
    ),
    Reason.ISSUER_CHANGED: _(
        "The server now names another sign-in service than before. An administrator has to check"
        " that, and enter the client's id and secret again."
    ),
    Reason.NO_PKCE: _(
        "The sign-in service does not offer the protection that a sign-in needs (PKCE with S256)."
    ),
    Reason.NO_CLIENT: _(
        "The sign-in service does not register applications by itself. An administrator has to register this"
        " platform there, and enter the client's id in the server's settings."
    ),
    Reason.REGISTRATION_REFUSED: _(
        "The sign-in service did not accept this platform as an application. An administrator"
        " can register it there by hand, and enter the client's id in the server's settings."
    ),
    Reason.UNUSABLE_CLIENT: _(
        "The sign-in service wants proof of a kind that this platform cannot give."
    ),
    Reason.UNKNOWN_STATE: _("This sign-in is unknown or was used before. Start again."),
    Reason.OTHER_PERSON: _("Someone else began this sign-in. Start again."),
    Reason.OTHER_BROWSER: _(
        "This sign-in was begun in another browser, or you have signed in anew since. Please start"
        " again."
    ),
    Reason.EXPIRED: _("This sign-in took longer than ten minutes. Please start again."),
    Reason.CHANGED: _("The server's settings changed while you signed in. Please start again."),
    Reason.CANCELLED: _("You cancelled, and nothing was connected."),
    Reason.REFUSED: _("The sign-in service refused. Nothing was connected."),
    Reason.SCOPE_REFUSED: _(
        "The sign-in service does not give what was asked for. An administrator can name other scopes in the"
        " server's settings."
    ),
    Reason.NO_CODE: _("The sign-in service did not send a code. Start again."),
    Reason.TOKEN_REFUSED: _(
        "The sign-in service did not complete the sign-in. Please start again."
    ),
    Reason.CLIENT_REFUSED: _(
        "The sign-in service does not accept this platform's client id or secret. An administrator"
        " has to check them."
    ),
    Reason.CLIENT_NOT_ALLOWED: _(
        "The sign-in service knows this platform, and does not allow it to sign people in like this. An"
        " administrator has to change that there."
    ),
    Reason.REGISTRATION_UNKNOWN: _(
        "The sign-in service registers this platform, and then does not know it. Trellis registers again after a"
        " day. An administrator can register it there by hand, and enter the client's id and secret in the"
        " server's settings."
    ),
    Reason.TOKEN_UNREADABLE: _("The sign-in service's answer could not be read."),
    Reason.ISSUER_FAILED: _("The sign-in service returned an error. Please try again in a moment."),
}


class SignInFailed(McpServersError):
    """A sign-in that was not begun, or brought nothing. The words are ours, never the other side's."""

    code = "sign_in_failed"
    status = 422

    def __init__(self, reason: Reason) -> None:
        super().__init__(gettext(WORDS[reason]), details={"reason": reason.value})
        self.reason = reason
