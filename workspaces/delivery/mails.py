"""Mails to people: with the product's name and look, and with links to its public address only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string


def public_url(path: str) -> str:
    """The full address of one of our pages, whatever address the current request was sent to."""
    return f"{settings.TRELLIS.public_origins[0]}{path}"


def compose(
    *,
    subject: str,
    text: str,
    to: Sequence[str],
    message_id: str = "",
    headers: Mapping[str, str] | None = None,
) -> EmailMultiAlternatives:
    """Make a mail: the text, and the same in the product's look; a line that is one of our addresses is a link.

    Args:
        message_id: of a mail that no person sends, so that whoever gets it twice can tell.
    """
    origins = tuple(f"{origin}/" for origin in settings.TRELLIS.public_origins)
    lines = [(line, line.startswith(origins) and " " not in line) for line in text.splitlines()]
    home = public_url("/")
    context = {"subject": subject, "lines": lines, "home": home}
    all_headers = dict(headers or {})
    if message_id:
        all_headers["Message-ID"] = f"<{message_id}@{urlsplit(home).hostname}>"
        all_headers["Auto-Submitted"] = "auto-generated"
    mail = EmailMultiAlternatives(subject=subject, body=text, to=to, headers=all_headers)
    mail.attach_alternative(render_to_string("workspaces/email/frame.html", context), "text/html")
    return mail
