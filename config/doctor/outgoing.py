"""What the doctor sees of what goes out to people."""

from __future__ import annotations

import smtplib
import socket
import ssl
from typing import Any, Final

from django.conf import settings
from django.utils.translation import ngettext

from chat.models import PushDevice
from config.doctor.findings import DoctorFinding, failed, look, ok
from workspaces.delivery.smtp import EmailBackend
from workspaces.delivery.web_push import vapid_keys
from workspaces.people.identity_provider import identity_provider
from workspaces.people.public_mail import is_public_mail
from workspaces.people.single_sign_on import joined_by_all
from workspaces.words.formats import whole

_MAIL_SECONDS: Final = 5
_PROVIDER_ADVICE: Final = (
    "Compare TRELLIS_SSO_ISSUER with what the provider calls itself, and check whether this machine reaches it."
    " A private address has to be in TRELLIS_ALLOWED_NETWORKS."
)


def check_mail(part: str, *, is_patient: bool = True) -> DoctorFinding:
    """Tell where mail goes, and whether the mail server lets Trellis in.

    Args:
        is_patient: false for pages, which do not wait for the mail server.
    """
    if settings.TRELLIS.email_host is None:
        text = f"written to files in {settings.EMAIL_FILE_PATH}"
        if settings.TRELLIS.database_url is None:
            return ok(part, text)
        return look(part, text, "Set EMAIL_HOST, so that invitations and reports reach people.")
    if is_patient:
        try:
            _greet_mail_server()
        except (OSError, UnicodeError) as error:
            text, advice = _mail_fault(error)
            return failed(part, text, f"{advice} Until then no mail reaches people.")
    return ok(part, f"sent through {settings.TRELLIS.email_host}")


def _greet_mail_server() -> None:
    """Connect and sign in as for a mail, and send none.

    Raises:
        OSError: it did not work; SMTP's errors are some of these.
        UnicodeError: SMTP cannot transfer the name of the server, the user name or the password.
    """
    server = EmailBackend(timeout=_MAIL_SECONDS)
    try:
        server.open()
    finally:
        server.close()


def _mail_fault(error: OSError | UnicodeError) -> tuple[str, str]:
    """What is wrong with the mail server, and what to do."""
    host, port = settings.EMAIL_HOST, settings.EMAIL_PORT
    match error:
        case UnicodeError():
            names = ("EMAIL_HOST", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD")
            odd = [name for name in names if not getattr(settings, name).isascii()]
            name = " and ".join(odd) or "EMAIL_HOST"
            return (
                f"Trellis cannot send what {name} holds to the mail server",
                f"Correct {name}. Use only letters without accents, digits and the signs of an English keyboard.",
            )
        case socket.gaierror():
            return (
                f"Trellis cannot find the mail server {host}",
                "Correct EMAIL_HOST, or check the DNS settings of this machine.",
            )
        case smtplib.SMTPAuthenticationError():
            return (
                f"{host} refuses the user name or the password",
                "Correct EMAIL_HOST_USER and EMAIL_HOST_PASSWORD.",
            )
        case ssl.SSLCertVerificationError():
            return (
                f"the certificate of {host} cannot be trusted ({error.verify_message})",
                "Set EMAIL_HOST to the name in the certificate, and have this machine trust who issued it.",
            )
        case ssl.SSLError() | smtplib.SMTPNotSupportedError():
            return (
                f"{host}:{port} does not take what EMAIL_SECURITY says ({settings.TRELLIS.email_security})",
                "Set EMAIL_SECURITY and EMAIL_PORT as the mail server needs them: mostly starttls and 587, or tls and 465.",
            )
    return (
        f"{host}:{port} does not answer as a mail server ({type(error).__name__})",
        "Start it, or correct EMAIL_HOST, EMAIL_PORT and EMAIL_SECURITY. Check whether a firewall blocks the connection.",
    )


def check_notifications(part: str) -> DoctorFinding:
    """Look whether notifications reach people's devices."""
    devices: Any = PushDevice.objects.across_workspaces()
    known = [key.id for key in vapid_keys()]
    if lost := devices.living().exclude(key_id__in=known).count():
        return look(
            part,
            ngettext(
                "%s device takes notifications from a key that is not in the settings",
                "%s devices take notifications from a key that is not in the settings",
                lost,
            )
            % whole(lost),
            "Put it behind the first in TRELLIS_PUSH_KEYS and restart. If it is lost, people add those devices again.",
        )
    failing = devices.living().exclude(last_error="").count()
    count = devices.living().count()
    number = ngettext("%s device", "%s devices", count) % whole(count)
    state = f"{number}, signed with key {known[0]}"
    if failing:
        return look(
            part,
            f"{state}; the last notification did not reach {failing} of them",
            "Look whether Trellis may connect to push services. The people's Reminders page shows the reason.",
        )
    return ok(part, state)


def check_single_sign_on(part: str, *, is_patient: bool = True) -> DoctorFinding:
    """Tell whether people can sign in with the identity provider of the settings.

    Args:
        is_patient: false for pages, which do not wait for the provider.
    """
    provider = identity_provider()
    if provider is None:
        return ok(part, "off: people sign in with passwords")
    text = f"with {provider.name}, for {', '.join(provider.domains)}"
    if is_patient:
        # Loads a library that a server without single sign-on does without.
        from workspaces.people.provider_requests import ProviderFailed, fetch_description

        try:
            fetch_description(provider.issuer)
        except ProviderFailed as error:
            return failed(part, f"{text}: {error}", _PROVIDER_ADVICE)
    if settings.TRELLIS.sso_workspace and joined_by_all() is None:
        return look(
            part,
            f"{text}, but the workspace “{settings.TRELLIS.sso_workspace}” is not there or suspended",
            "Correct TRELLIS_SSO_WORKSPACE. Until then new people need an invitation.",
        )
    public = [domain for domain in provider.domains if is_public_mail(domain)]
    if settings.TRELLIS.sso_workspace and public:
        return look(
            part,
            f"{text}: anybody can get an address at {', '.join(public)}, and join “{settings.TRELLIS.sso_workspace}”",
            "Take public mail services out of TRELLIS_SSO_DOMAINS, or leave TRELLIS_SSO_WORKSPACE empty.",
        )
    return ok(part, text)
