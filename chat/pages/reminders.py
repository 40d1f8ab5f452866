"""The page where people choose how they are told of what waits for them, and of finished answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from chat.models import PushDevice, ReminderChoice
from chat.reminders.choices import ReminderDraft, can_mail, choice_of, choose
from chat.reminders.devices import (
    MOST_DEVICES,
    DeviceDraft,
    add_device,
    current_key,
    devices_of,
    remove_device,
)
from chat.reminders.pushing import send_test
from workspaces.errors import DomainError, InvalidInput
from workspaces.pages.parts import id_of, put_faults, workspace_of
from workspaces.people.browser_sessions import device as device_name
from workspaces.words.formats import time_zones

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


class ReminderForm(forms.ModelForm):
    """One person's choice."""

    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        widget=forms.TextInput(attrs={"list": "time-zones", "autocomplete": "off"}),
        help_text=gettext_lazy("Of the quiet hours, such as Europe/Zurich."),
    )

    class Meta:
        model = ReminderChoice
        fields = ("mail_after", "answers_after", "quiet_from", "quiet_to", "time_zone")
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }
        help_texts = {
            "mail_after": gettext_lazy(
                "When a call waits for your approval, or a question for your answer."
            ),
            "answers_after": gettext_lazy(
                "Off at first, because it can be many mails. It counts from the end of an answer that took over 10 seconds. We mail only answers that you have seen on none of your devices."
            ),
            "quiet_from": gettext_lazy("Leave both empty for none."),
            "quiet_to": gettext_lazy("What comes in quiet hours reaches you after them."),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        """Ask for no time zone where the person has chosen one for all of Trellis."""
        super().__init__(*args, **options)
        if self.instance.owner.time_zone:
            del self.fields["time_zone"]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def reminders(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Choose when mails are sent, and when not."""
    workspace, person = workspace_of(request), request.user
    choice = choice_of(workspace=workspace, person=person)
    form = ReminderForm(request.POST or None, instance=choice)
    if request.method == "POST" and form.is_valid():
        draft = ReminderDraft(**form.cleaned_data)
        try:
            choose(workspace=workspace, person=person, draft=draft, actor=request.actor)
        except InvalidInput as error:
            put_faults(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("chat:reminders", workspace_slug=workspace_slug)
    context: dict[str, Any] = {
        "form": form,
        "can_mail": can_mail(),
        "is_confirmed": person.is_address_confirmed,
        "has_choice": choice.told_until is not None or not choice._state.adding,
        "time_zones": time_zones(),
        **_devices(request),
    }
    return render(request, "chat/reminders.html", context, status=422 if form.errors else 200)


@require_http_methods(["POST"])
@login_required
def devices(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add this browser as a device, remove a device, or send a test to one."""
    workspace, person = workspace_of(request), request.user
    action = request.POST.get("action")
    try:
        if action == "add":
            add_device(
                workspace=workspace, person=person, draft=_draft(request), actor=request.actor
            )
            messages.success(request, _("You are notified on this device from now on."))
        else:
            device = devices_of(workspace, person).fetch(id_of(request.POST.get("device", "")))
            _change(device, action, request)
    except InvalidInput as error:
        faults = [fault for found in error.fields.values() for fault in found]
        messages.error(request, " ".join(faults) or error.message)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("chat:reminders", workspace_slug=workspace_slug)


def _change(device: PushDevice, action: str | None, request: WorkspaceRequest) -> None:
    if action == "remove":
        remove_device(device=device, actor=request.actor)
        messages.success(request, _("Removed."))
    elif action == "test":
        if fault := send_test(device=device, actor=request.actor):
            message = _("We could not hand the test to this device's push service. %(fault)s") % {
                "fault": fault
            }
            messages.error(request, message)
        else:
            messages.success(request, _("A test notification is on its way."))


def _draft(request: WorkspaceRequest) -> DeviceDraft:
    given = request.POST
    return DeviceDraft(
        endpoint=given.get("endpoint", ""),
        p256dh=given.get("p256dh", ""),
        auth=given.get("auth", ""),
        key_id=given.get("key_id", ""),
        shows_titles=given.get("shows_titles") == "on",
        name=device_name(request.headers.get("User-Agent", "")),
        session_key=request.session.session_key,
    )


def _devices(request: WorkspaceRequest) -> dict[str, Any]:
    key_id, public_key = current_key()
    return {
        "devices": list(devices_of(workspace_of(request), request.user)),
        "push_key_id": key_id,
        "push_key": public_key,
        "most_devices": MOST_DEVICES,
    }
