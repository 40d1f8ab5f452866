"""Notifications on people's devices, also while Trellis is closed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from chat.models import Conversation, DataCopy, PushDevice, PushMessage, ToolCall, Turn
from chat.reminders import pushing
from chat.reminders.choices import ReminderDraft, choose, until_quiet
from chat.reminders.devices import MOST_DEVICES, current_key
from chat.services.approvals import decide
from chat.services.seen_answers import mark_seen
from chat.tasks import notify_devices
from chat.values import Decision
from tests.chat.conftest import Chat
from tests.chat.reminders.waiting_people import answered
from tests.chat.services.waiting_calls import waiting_call
from tests.factories import Tenant, make_tenant
from tests.fakes.push_service import Browser, PushService, claims_of
from tests.workspaces.people.asked import send
from workspaces.database import database_now
from workspaces.delivery import outbox
from workspaces.models import AccessRequest, Membership, User, Workspace
from workspaces.people.access_requests import decide_request
from workspaces.people.services import remove_member
from workspaces.people.suspending import suspend_member


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PushService]:
    running = PushService(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def browser(service: PushService) -> Browser:
    return Browser(f"{service.origin}/send/abc")


def body_of(browser: Browser, **more: Any) -> dict[str, Any]:
    """What the page sends when a browser has made a subscription."""
    return {**browser.subscription, "key_id": current_key()[0], **more}


def added(
    tenant: Tenant, browser: Browser, client: Client | None = None, **more: Any
) -> PushDevice:
    """The member's browser as a device, added an hour ago."""
    client = client or tenant.client("member")
    url = f"/w/{tenant.workspace.slug}/reminders/devices/"
    answer = client.post(url, {"action": "add", **body_of(browser, **more)}, follow=True)
    assert "You are notified on this device from now on." in answer.content.decode()
    rows = PushDevice.objects.for_workspace(tenant.workspace)
    rows.update(told_until=database_now() - timedelta(hours=1))
    newest: PushDevice = rows.latest("pk")
    return newest


def shown(browser: Browser, service: PushService) -> list[dict[str, Any]]:
    """What the browser shows of what came."""
    return [browser.read(body) for _, _, body in service.heard]


def test_a_device_is_notified_once_of_a_finished_answer(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-613: encrypted for that browser, signed by us, with the exact place and nothing of what the chat says."""
    added(chat.tenant, browser)
    turn = answered(chat, minutes_ago=1)
    notify_devices()
    message = turn.messages.get(role="assistant")
    slug = chat.tenant.workspace.slug
    [notification] = shown(browser, service)
    assert notification == {
        "title": "The answer is finished",
        "body": chat.tenant.workspace.name,
        "url": f"/w/{slug}/c/{chat.conversation.pk}/#message-{message.pk}",
        "tag": f"trellis-{chat.conversation.pk}",
    }
    [(path, headers, _)] = service.heard
    assert path == "/send/abc"
    _, public = claims_of(headers, audience=service.origin)
    assert public == current_key()[1]
    assert (headers["content-encoding"], headers["ttl"]) == ("aes128gcm", "14400")
    assert headers["topic"] == chat.conversation.pk.hex
    notify_devices()
    assert len(service.heard) == 1


def test_a_device_is_notified_of_what_waits(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-613: with the chat's title where its person wants that, and no argument of the call."""
    added(chat.tenant, browser, shows_titles="on")
    call = waiting_call(chat)
    calls = ToolCall.objects.for_workspace(chat.tenant.workspace)
    notify_devices()
    assert service.heard == [], "the page has a moment to show it first"
    calls.update(created_at=database_now() - timedelta(minutes=1))
    Conversation.objects.for_workspace(chat.tenant.workspace).update(title="Tomatoes")
    notify_devices()
    [notification] = shown(browser, service)
    assert (notification["title"], notification["body"]) == (
        "A call waits for your approval",
        "Tomatoes",
    )
    assert notification["url"].endswith(f"#message-{call.message_id}")
    assert "the world" not in str(notification)


def test_administrators_are_notified_of_what_members_ask_for(
    tenant: Tenant, browser: Browser, service: PushService
) -> None:
    """REL-613, REL-585: where it is decided, and nothing of what was asked; decided meanwhile, it is no news."""
    added(tenant, browser, tenant.client("admin"), shows_titles="on")
    assert send(tenant, name="Weather", reason="Trips").status_code == 302
    requests = AccessRequest.objects.for_workspace(tenant.workspace)
    requests.update(created_at=database_now() - timedelta(minutes=1))
    notify_devices()
    [notification] = shown(browser, service)
    assert notification["title"] == "A request of a member waits for you"
    assert notification["url"] == f"/w/{tenant.workspace.slug}/requests/"
    assert "Weather" not in str(notification)
    PushDevice.objects.for_workspace(tenant.workspace).update(
        told_until=database_now() - timedelta(hours=1)
    )
    assert pushing.find_pushes() == 1
    decide_request(request=requests.get(), is_granted=False, note="", actor=tenant.actor("owner"))
    assert pushing.deliver_due() == 1
    assert len(service.heard) == 1


def test_a_device_is_notified_of_a_copy_that_is_ready(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-1071: it leads to the page where the person downloads it; an erased one is no news."""
    added(chat.tenant, browser)
    for status in ("ready", "erased"):
        DataCopy.objects.create(
            workspace=chat.tenant.workspace,
            owner=chat.tenant.member,
            status=status,
            finished_at=database_now() - timedelta(minutes=1),
        )
    notify_devices()
    (one,) = shown(browser, service)
    assert one["title"] == "Your copy of your data is ready"
    assert one["url"] == f"/w/{chat.tenant.workspace.slug}/your-data/"


def test_what_is_no_news_any_more_is_not_sent(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-613: seen, or decided, between finding and sending; short answers are no news at all."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    assert pushing.find_pushes() == 1
    mark_seen(conversation=chat.reload_conversation(), actor=chat.actor)
    assert pushing.deliver_due() == 1
    call = waiting_call(chat)
    ToolCall.objects.for_workspace(chat.tenant.workspace).update(
        created_at=database_now() - timedelta(seconds=30)
    )
    assert pushing.find_pushes() == 1
    chat.model.say("gone")
    chat.watching.forget()
    decide(call=call, decision=Decision.REFUSED, actor=chat.actor)
    chat.watching.turn("completed")
    mark_seen(conversation=chat.reload_conversation(), actor=chat.actor)
    assert pushing.deliver_due() == 1
    answered(chat, minutes_ago=0.5, seconds=5)
    notify_devices()
    assert service.heard == []


def test_several_things_are_one_notification(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-613: it leads to the workspace."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=2)
    waiting_call(chat)
    turns = Turn.objects.for_workspace(chat.tenant.workspace)
    ended = turns.filter(status="completed").get().finished_at
    Conversation.objects.for_workspace(chat.tenant.workspace).update(unseen_answer_at=ended)
    ToolCall.objects.for_workspace(chat.tenant.workspace).update(
        created_at=database_now() - timedelta(minutes=1)
    )
    notify_devices()
    [notification] = shown(browser, service)
    assert notification["title"] == "2 things are new for you"
    assert notification["url"] == f"/w/{chat.tenant.workspace.slug}/"


def test_quiet_hours_hold(chat: Chat, browser: Browser, service: PushService) -> None:
    """REL-614: nothing is found, and nothing that was found is sent; it comes after them."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    assert pushing.find_pushes() == 1
    now = database_now()
    quiet = ReminderDraft(
        mail_after=60,
        quiet_from=(now - timedelta(hours=1)).time(),
        quiet_to=(now + timedelta(hours=1)).time(),
    )
    person = chat.tenant.member
    choose(workspace=chat.tenant.workspace, person=person, draft=quiet, actor=chat.actor)
    pushing.deliver_due()
    assert service.heard == []
    row = PushMessage.objects.across_workspaces().get()
    assert (row.status, row.attempts) == ("waiting", 0)
    answered(chat, minutes_ago=0.5)
    assert pushing.find_pushes() == 0
    awake = ReminderDraft(mail_after=60)
    choose(workspace=chat.tenant.workspace, person=person, draft=awake, actor=chat.actor)
    PushMessage.objects.across_workspaces().update(next_attempt_at=now)
    notify_devices()
    assert len(service.heard) == 1


def test_a_push_service_drops_what_would_come_in_quiet_hours(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-614: a device that is off until then is not woken."""
    added(chat.tenant, browser)
    now = database_now()
    soon = ReminderDraft(
        mail_after=60,
        quiet_from=(now + timedelta(minutes=90)).time(),
        quiet_to=(now + timedelta(hours=5)).time(),
    )
    choice = choose(
        workspace=chat.tenant.workspace, person=chat.tenant.member, draft=soon, actor=chat.actor
    )
    answered(chat, minutes_ago=1)
    notify_devices()
    [(_, headers, _)] = service.heard
    assert int(headers["ttl"]) <= 90 * 60
    left = until_quiet(choice, now)
    assert left is not None
    assert timedelta(minutes=88) < left <= timedelta(minutes=90)


@pytest.mark.parametrize("status", [404, 410])
def test_a_device_that_its_push_service_no_longer_knows_is_removed(
    chat: Chat, browser: Browser, service: PushService, status: int
) -> None:
    """REL-615: with what was on its way to it."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    service.answers.append(status)
    notify_devices()
    assert not PushDevice.objects.across_workspaces().exists()
    assert not PushMessage.objects.across_workspaces().exists()


def test_what_is_not_taken_is_sent_again(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-615: from the outbox, with its pauses; the page says what went wrong."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    service.answers.append(503)
    notify_devices()
    row = PushMessage.objects.across_workspaces().get()
    assert (row.status, row.attempts) == ("waiting", 1)
    page = chat.tenant.client("member").get(f"/w/{chat.tenant.workspace.slug}/reminders/")
    assert "It answered with status 503." in page.content.decode()
    PushMessage.objects.across_workspaces().update(next_attempt_at=database_now())
    notify_devices()
    assert len(service.heard) == 2
    row.refresh_from_db()
    assert row.status == outbox.Delivery.Status.DELIVERED
    assert PushDevice.objects.across_workspaces().get().last_error == ""


@pytest.mark.parametrize(
    "how", ["signed out", "session ended", "new password", "removed", "suspended", "inactive"]
)
def test_whoever_has_left_is_not_notified(
    chat: Chat, browser: Browser, service: PushService, how: str
) -> None:
    """SEC-407: a device goes with the session that it was added in, and with the membership."""
    tenant, client = chat.tenant, chat.tenant.client("member")
    added(tenant, browser, client)
    answered(chat, minutes_ago=1)
    assert pushing.find_pushes() == 1
    memberships = Membership.objects.for_workspace(tenant.workspace)
    membership = memberships.get(user=tenant.member)
    if how == "signed out":
        client.post("/accounts/logout/")
        assert not PushDevice.objects.across_workspaces().exists()
    elif how == "session ended":
        Session.objects.update(expire_date=database_now() - timedelta(seconds=1))
    elif how == "new password":
        tenant.member.set_password("another-one-altogether")
        tenant.member.save()
    elif how == "removed":
        remove_member(membership=membership, actor=tenant.actor("owner"))
        assert not PushDevice.objects.across_workspaces().exists()
    elif how == "suspended":
        suspend_member(membership=membership, reason="", actor=tenant.actor("owner"))
    else:
        User.objects.filter(pk=tenant.member.pk).update(is_active=False)
    notify_devices()
    assert service.heard == []
    is_kept = how in {"suspended", "inactive"}
    assert PushDevice.objects.across_workspaces().exists() is is_kept


def test_a_notification_that_waits_does_not_leave_a_suspended_workspace(
    chat: Chat, browser: Browser, service: PushService
) -> None:
    """REL-2613."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    assert pushing.find_pushes() == 1
    Workspace.objects.filter(pk=chat.tenant.workspace.pk).update(is_active=False)
    notify_devices()
    assert service.heard == []


def test_a_device_is_a_persons_own(chat: Chat, browser: Browser, service: PushService) -> None:
    """SEC-407: nobody sees, tries or removes another's; who has the browser now has it alone; there is a limit."""
    tenant, other = chat.tenant, make_tenant("other")
    device = added(tenant, browser)
    url = f"/w/{tenant.workspace.slug}/reminders/devices/"
    for action in ("remove", "test"):
        body = {"action": action, "device": str(device.pk)}
        assert tenant.client("admin").post(url, body).status_code in {302, 404}
    assert PushDevice.objects.across_workspaces().filter(pk=device.pk).exists()
    assert service.heard == []
    mine = added(other, browser)
    assert list(PushDevice.objects.across_workspaces()) == [mine], "the one before signed out"
    client = tenant.client("member")
    for number in range(MOST_DEVICES):
        added(tenant, Browser(f"{service.origin}/send/{number}"), client)
    body = {"action": "add", **body_of(Browser(f"{service.origin}/send/more"))}
    refused = client.post(url, body, follow=True).content.decode()
    assert f"You can be notified on {MOST_DEVICES} devices." in refused


def test_nothing_leaves_for_a_private_network(
    chat: Chat, browser: Browser, service: PushService, settings: Settings
) -> None:
    """SEC-406: the address is a browser's word, so it goes through the egress client, over https alone."""
    added(chat.tenant, browser)
    answered(chat, minutes_ago=1)
    settings.TRELLIS = django_settings.TRELLIS.model_copy(update={"allowed_networks": ()})
    notify_devices()
    assert service.heard == []
    assert "not allowed" in PushDevice.objects.across_workspaces().get().last_error
    url = f"/w/{chat.tenant.workspace.slug}/reminders/devices/"
    plain = Browser(browser.endpoint.replace("https", "http"))
    body = {"action": "add", **body_of(plain)}
    refused = chat.tenant.client("member").post(url, body, follow=True).content.decode()
    assert "This is not a plain https:// URL." in refused


def test_addresses_and_secrets_are_sealed(chat: Chat, browser: Browser) -> None:
    """SEC-406: whoever reads the table can neither write to a device nor read what it gets."""
    device = added(chat.tenant, browser)
    stored = PushDevice.objects.across_workspaces().filter(pk=device.pk)
    assert device.endpoint is not None
    assert device.endpoint.sealed is not None
    assert browser.endpoint not in str(stored.values()[0])
    page = chat.tenant.client("member").get(f"/w/{chat.tenant.workspace.slug}/reminders/")
    for text in (browser.endpoint, browser.subscription["auth"]):
        assert text not in page.content.decode()


def test_people_try_and_remove_a_device(chat: Chat, browser: Browser, service: PushService) -> None:
    """REL-616: on the page; a second test has to wait a moment."""
    device = added(chat.tenant, browser)
    client = chat.tenant.client("member")
    url = f"/w/{chat.tenant.workspace.slug}/reminders/devices/"
    body = {"action": "test", "device": str(device.pk)}
    page = client.post(url, body, follow=True).content.decode()
    assert "A test notification is on its way." in page
    [notification] = shown(browser, service)
    assert notification["title"] == "Notifications work on this device"
    page = client.post(url, body, follow=True).content.decode()
    assert "You have just sent one." in page
    PushDevice.objects.across_workspaces().update(tested_at=None)
    service.answers.append(500)
    page = client.post(url, body, follow=True).content.decode()
    assert "It answered with status 500." in page
    page = client.post(url, {**body, "action": "remove"}, follow=True).content.decode()
    assert "You are notified on no device yet." in page


def test_programs_manage_devices(chat: Chat, browser: Browser, service: PushService) -> None:
    """REL-616: over REST, with the same checks at the same fields."""
    client = chat.tenant.client("member")
    header = {"X-Workspace": chat.tenant.workspace.slug}

    def post(path: str, body: dict[str, Any] | None = None) -> Any:
        return client.post(
            f"/api/push-devices/{path}", body or {}, content_type="application/json", headers=header
        )

    key = client.get("/api/push-devices/key/", headers=header).json()
    body = {**browser.subscription, "key_id": key["key_id"], "name": "Kitchen"}
    made = post("", body)
    assert made.status_code == 201, made.content
    assert set(made.json()).isdisjoint({"endpoint", "auth", "p256dh"})
    [listed] = client.get("/api/push-devices/", headers=header).json()
    assert (listed["name"], listed["shows_titles"]) == ("Kitchen", False)
    assert post(f"{listed['id']}/test/").json() == {"is_sent": True, "error": ""}
    assert post(f"{listed['id']}/test/").status_code == 409
    for wrong, field in (
        ({"endpoint": "http://push.example.org/"}, "endpoint"),
        ({"p256dh": "AAAA"}, "p256dh"),
        ({"key_id": "none"}, "key_id"),
    ):
        refused = post("", {**body, **wrong})
        assert refused.status_code == 422, refused.content
        assert refused.json()["errors"][0]["attr"] == field
    url = f"/api/push-devices/{listed['id']}/"
    assert client.delete(url, headers=header).status_code == 204
    assert client.get("/api/push-devices/", headers=header).json() == []


def test_a_device_whose_key_is_gone_says_so(
    chat: Chat, browser: Browser, service: PushService, settings: Settings
) -> None:
    """REL-617: nothing is sent that a push service would refuse, and the page says what to do."""
    device = added(chat.tenant, browser)
    PushDevice.objects.across_workspaces().update(key_id="gone")
    device.refresh_from_db()
    fault = pushing.send_test(device=device, actor=chat.actor)
    assert "Remove the device and add it again." in fault
    assert service.heard == []
