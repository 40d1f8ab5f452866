"""The pages where owners add webhooks, try them, and see what was sent."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.webhooks.services import create_webhook
from tests.factories import Tenant
from tests.fakes.webhook_program import Program

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_webhook_is_added_tried_and_deleted(tenant: Tenant, program: Program) -> None:
    """REL-3164: its secret is shown once, and the page has what came of each event."""
    client, slug = tenant.client("owner"), tenant.workspace.slug
    home = reverse("chat:webhooks", args=[slug])
    assert "No webhooks yet" in client.get(home).content.decode()
    entered = {"url": program.url, "events": ["turn.finished"]}
    added = client.post(f"{home}add/", entered).content.decode()
    [secret] = re.findall(r"whsec_[\w+/=]+", added)
    endpoint = WebhookEndpoint.objects.for_workspace(tenant.workspace).get()
    page = f"{home}{endpoint.pk}/"
    shown = client.get(page).content.decode()
    assert secret not in shown
    assert f'action="{page}secret/"' in shown
    taken = client.post(f"{page}test/", follow=True).content.decode()
    assert "The program took a test event." in taken
    assert "delivered" in taken
    program.answers = [500]
    refused = client.post(f"{page}test/", follow=True).content.decode()
    assert "The test event did not arrive" in refused
    assert "Fails" in client.get(home).content.decode()
    renewed = client.post(f"{page}secret/").content.decode()
    assert secret not in renewed
    assert "whsec_" in renewed
    assert client.post(f"{page}delete/").url == home  # type: ignore[attr-defined]
    assert not WebhookEndpoint.objects.for_workspace(tenant.workspace).exists()


def test_a_webhook_is_changed_and_switched_off(tenant: Tenant) -> None:
    """REL-3164: what is wrong stands at its field."""
    client, actor = tenant.client("owner"), tenant.actor("owner")
    endpoint, _secret = create_webhook(
        workspace_id=tenant.workspace.pk,
        actor=actor,
        url="https://hook.example.org/",
        events=["turn.finished", "approval.wanted"],
    )
    page = reverse("chat:webhook", args=[tenant.workspace.slug, endpoint.pk])
    faulty = client.post(page, {"url": "https://other.example.org/", "events": []})
    assert faulty.status_code == 422
    assert faulty.context["form"].errors.keys() == {"events"}
    refused = client.post(page, {"url": "ftp://hook.example.org/", "events": ["turn.finished"]})
    assert refused.status_code == 422
    assert refused.context["form"].errors.keys() == {"url"}
    assert '<span class="mono-quiet break-all">https://hook.example.org/</span>' in (
        refused.content.decode()
    )
    entered = {"url": "https://other.example.org/", "events": ["approval.wanted"]}
    assert client.post(page, entered).status_code == 302
    client.post(f"{page}off/")
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.events) == ("https://other.example.org/", ["approval.wanted"])
    assert not endpoint.is_active
    assert "Send a test event" not in client.get(page).content.decode()


def test_only_who_may_manage_the_workspace_sees_webhooks(tenant: Tenant) -> None:
    """REL-3164: as over REST; who may finds them in the admin."""
    home = reverse("chat:webhooks", args=[tenant.workspace.slug])
    for role in ("admin", "member", "auditor"):
        assert tenant.client(role).get(home).status_code == 403
    overview = tenant.client("owner").get("/admin/", follow=True).content.decode()
    assert home in overview
    assert not WebhookDelivery.objects.for_workspace(tenant.workspace).exists()
