"""Mail by SMTP."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends import smtp

from workspaces.database import give_back_connections


class EmailBackend(smtp.EmailBackend):
    """Holds no database connection while a mail server takes its time."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """As its base."""
        give_back_connections()
        return super().send_messages(email_messages)
