"""The page where people choose how they are reminded of what waits for them."""

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

from audit.views.parts import workspace_of
from chat.models import ReminderChoice
from chat.reminders.choices import ReminderDraft, can_mail, choice_of, choose, time_zones
from workspaces.errors import InvalidInput

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
        fields = ("mail_after", "quiet_from", "quiet_to", "time_zone")
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }
        help_texts = {
            "mail_after": gettext_lazy(
                "When a call waits for your approval, or a question for your answer."
            ),
            "quiet_from": gettext_lazy("Leave both empty for none."),
            "quiet_to": gettext_lazy("What comes in quiet hours is mailed after them."),
        }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def reminders(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Choose when mails are sent, and when not."""
    workspace, person = workspace_of(request), request.user
    choice = choice_of(workspace=workspace, person=person)
    form = ReminderForm(request.POST or None, instance=choice)
    if request.method == "POST" and form.is_valid():
        draft = ReminderDraft(
            **{name: form.cleaned_data[name] for name in ReminderForm.Meta.fields}
        )
        try:
            choose(workspace=workspace, person=person, draft=draft, actor=request.actor)
        except InvalidInput as error:
            for name, faults in error.fields.items():
                form.add_error(name, faults)
        else:
            messages.success(request, _("Saved."))
            return redirect("chat:reminders", workspace_slug=workspace_slug)
    context: dict[str, Any] = {
        "form": form,
        "can_mail": can_mail(),
        "is_confirmed": person.is_address_confirmed,
        "has_choice": choice.told_until is not None or not choice._state.adding,
        "time_zones": time_zones(),
    }
    return render(request, "chat/reminders.html", context, status=422 if form.errors else 200)
