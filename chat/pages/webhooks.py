"""The pages of a workspace's webhooks: programs that are told of answers and approvals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.values import WebhookEvent
from chat.webhooks import services
from chat.webhooks.delivery import KEEP_DAYS
from workspaces.errors import InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import put_faults, workspace_of
from workspaces.pages.seen_values import NoticesOthers, hold, saves_one_at_a_time
from workspaces.roles import Permission

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

_EVENTS: Final[dict[str, _StrPromise]] = {
    WebhookEvent.TURN_FINISHED: gettext_lazy("An answer is finished, has failed or was stopped"),
    WebhookEvent.APPROVAL_WANTED: gettext_lazy("A tool call waits for approval"),
}
_STATES: Final[dict[str, tuple[_StrPromise, str]]] = {
    WebhookDelivery.Status.WAITING: (gettext_lazy("waiting"), "info"),
    WebhookDelivery.Status.DELIVERED: (gettext_lazy("delivered"), "ok"),
    WebhookDelivery.Status.GIVEN_UP: (gettext_lazy("given up"), "bad"),
}


class WebhookForm(NoticesOthers, forms.Form):
    """Where events are sent to, and which."""

    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=500,
        widget=forms.URLInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        help_text=gettext_lazy("Each event is posted here as JSON, and signed."),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Tell it when"),
        choices=list(_EVENTS.items()),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Any = None, *, webhook: WebhookEndpoint | None = None) -> None:
        initial = (
            {"url": webhook.url, "events": webhook.events}
            if webhook is not None
            else {"events": list(_EVENTS)}
        )
        super().__init__(data, initial=initial)


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event of the last days, in words."""

    delivery: WebhookDelivery
    event: str
    word: str
    tone: str


@require_safe
@login_required
def webhooks(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """All webhooks, and the form for another."""
    return render(request, "chat/webhooks.html", _page(request))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def webhook_add(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add one, and show its secret this once. Whoever opens the address itself gets to the page with the form."""
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    if request.method != "POST":
        return redirect(_url(workspace))
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            _webhook, secret = services.create_webhook(
                workspace_id=workspace.pk, actor=request.actor, **form.cleaned_data
            )
        except InvalidInput as error:
            put_faults(form, error)
        else:
            return render(request, "chat/webhooks.html", _page(request, secret=secret))
    return render(request, "chat/webhooks.html", _page(request, form=form), status=422)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def webhook(request: WorkspaceRequest, workspace_slug: str, webhook_id: UUID) -> HttpResponse:
    """One webhook: its settings, and what was sent to it."""
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    endpoint = WebhookEndpoint.objects.for_workspace(workspace).fetch(webhook_id)
    hold(request, endpoint)
    form = WebhookForm(request.POST or None, webhook=endpoint)
    if request.method == "POST" and form.is_valid():
        try:
            services.update_webhook(endpoint=endpoint, actor=request.actor, **form.cleaned_data)
        except InvalidInput as error:
            put_faults(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("chat:webhook", workspace_slug, webhook_id)
    status = 422 if request.method == "POST" else 200
    return render(request, "chat/webhook.html", _one(request, endpoint, form), status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def webhook_change(
    request: WorkspaceRequest, workspace_slug: str, webhook_id: UUID, verb: str
) -> HttpResponse:
    """What a button says. It may show a secret, so the address stays in the browser: opened, it leads to the page."""
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    if request.method != "POST":
        return redirect("chat:webhook", workspace_slug, webhook_id)
    endpoint = WebhookEndpoint.objects.for_workspace(workspace).fetch(webhook_id)
    actor = request.actor
    if verb == "delete":
        services.delete_webhook(endpoint=endpoint, actor=actor)
        messages.success(request, _("The webhook is deleted."))
        return redirect(_url(workspace))
    if verb == "secret":
        secret = services.renew_secret(endpoint=endpoint, actor=actor)
        context = _one(request, endpoint, WebhookForm(webhook=endpoint)) | {"new_secret": secret}
        return render(request, "chat/webhook.html", context)
    if verb == "test":
        _tell_of_test(request, services.try_webhook(endpoint=endpoint, actor=actor))
    elif verb in {"on", "off"}:
        services.update_webhook(endpoint=endpoint, actor=actor, is_active=verb == "on")
    else:
        raise NotFound
    return redirect("chat:webhook", workspace_slug, webhook_id)


def _tell_of_test(request: WorkspaceRequest, delivery: WebhookDelivery) -> None:
    if delivery.status == WebhookDelivery.Status.DELIVERED:
        messages.success(request, _("The program took a test event."))
    else:
        message = _("The test event did not arrive: %(why)s")
        messages.error(request, message % {"why": delivery.last_error})


def _url(workspace: Workspace) -> str:
    return reverse("chat:webhooks", args=[workspace.slug])


def _page(
    request: WorkspaceRequest, *, form: WebhookForm | None = None, secret: str = ""
) -> dict[str, Any]:
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    rows = WebhookEndpoint.objects.for_workspace(workspace).order_by("id")
    return {
        "rows": [(row, [_EVENTS.get(name, name) for name in row.events]) for row in rows],
        "webhooks_url": _url(workspace),
        "form": form or WebhookForm(),
        "is_form_open": form is not None,
        "new_secret": secret,
    }


def _one(request: WorkspaceRequest, endpoint: WebhookEndpoint, form: WebhookForm) -> dict[str, Any]:
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    deliveries = WebhookDelivery.objects.for_workspace(endpoint.workspace_id)
    page = page_in_address(deliveries.filter(endpoint=endpoint), request.GET, by="-id")
    path = reverse("chat:webhook", args=[workspace.slug, endpoint.pk])
    return {
        "webhook": endpoint,
        "webhooks_url": _url(workspace),
        "form": form,
        "sent": [_in_words(row) for row in page.rows],
        "kept_days": KEEP_DAYS,
        "ways": ways_from(page, request.GET, path=path, anchor="#sent-heading"),
        "address_faults": page_faults(page),
    }


def _in_words(row: WebhookDelivery) -> SentEvent:
    word, tone = _STATES[row.status]
    event = _EVENTS.get(row.event) or _("Test event")
    return SentEvent(delivery=row, event=str(event), word=str(word), tone=tone)
