"""Two administrators who change a webhook at one moment."""

from __future__ import annotations

import pytest

from chat.models import WebhookEndpoint
from chat.webhooks.services import create_webhook, delete_webhook, renew_secret, update_webhook
from tests.factories import Tenant
from workspaces.errors import NotFound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def a_webhook(tenant: Tenant) -> WebhookEndpoint:
    row, _secret = create_webhook(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        url="https://hook.example.org/",
        events=["turn.finished"],
    )
    return row


def test_a_signing_key_that_was_renewed_stays(tenant: Tenant) -> None:
    """REL-1548: whoever switches the webhook off at the same moment does not bring the old one back."""
    row, owner = a_webhook(tenant), tenant.actor("owner")
    late = WebhookEndpoint.objects.for_workspace(tenant.workspace).get(pk=row.pk)
    secret = renew_secret(endpoint=row, actor=owner)
    update_webhook(endpoint=late, actor=owner, is_active=False)
    stored = WebhookEndpoint.objects.for_workspace(tenant.workspace).get(pk=row.pk)
    assert stored.secret is not None
    assert (stored.secret.reveal("test"), stored.is_active) == (secret, False)


def test_a_webhook_that_was_deleted_does_not_come_back(tenant: Tenant) -> None:
    """REL-1548: it would go on to tell a program what happens here."""
    row, owner = a_webhook(tenant), tenant.actor("owner")
    late = WebhookEndpoint.objects.for_workspace(tenant.workspace).get(pk=row.pk)
    delete_webhook(endpoint=row, actor=owner)
    with pytest.raises(NotFound):
        update_webhook(endpoint=late, actor=owner, is_active=True)
    with pytest.raises(NotFound):
        renew_secret(endpoint=late, actor=owner)
    with pytest.raises(NotFound):
        delete_webhook(endpoint=late, actor=owner)
    assert not WebhookEndpoint.objects.for_workspace(tenant.workspace).exists()
