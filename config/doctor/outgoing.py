"""What the doctor sees of what goes out to people."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import ngettext

from chat.models import PushDevice
from config.doctor.findings import DoctorFinding, look, ok
from workspaces.delivery.web_push import vapid_keys
from workspaces.words.formats import whole


def check_mail(part: str) -> DoctorFinding:
    """Tell where mail goes."""
    if settings.TRELLIS.email_host is None:
        text = f"written to files in {settings.EMAIL_FILE_PATH}"
        if settings.TRELLIS.database_url is None:
            return ok(part, text)
        return look(part, text, "Set EMAIL_HOST, so that invitations and reports reach people.")
    return ok(part, f"sent through {settings.TRELLIS.email_host}")


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
