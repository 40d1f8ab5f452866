"""What the doctor sees of the demo: its password is known to all."""

from __future__ import annotations

from django.conf import settings

from config.demo import takes_known_password
from config.doctor.findings import DoctorFinding, look, ok


def check_demo(part: str, *, host: str | None = None) -> DoctorFinding:
    """Look whether others can sign in as the demo's people.

    Args:
        host: the address that a server listens at; by default that of the settings.
    """
    config = settings.TRELLIS
    if not config.is_open_to_others(host or config.host):
        return ok(part, "not looked at: by the settings, only this machine reaches Trellis")
    if takes_known_password():
        return look(
            part,
            "others can reach Trellis, and the demo's password is known to all",
            "Switch off the accounts at demo.example in the admin, or sign in as each and change the password.",
        )
    return ok(part, "nobody can sign in with the demo's password")
