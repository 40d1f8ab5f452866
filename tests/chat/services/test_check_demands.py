"""A bud that demands its checks before saving: every road to a new version keeps to it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.urls import reverse

from audit.actions import Action
from audit.models import AuditEntry
from chat.models import Bud, CheckRun
from chat.services.bud_versions import restore_version
from chat.services.bud_yaml import apply_bud, write_bud
from chat.services.buds import put_server_into_buds, update_bud
from chat.services.check_demands import ChecksNotPassed
from chat.services.checks_ahead import check_file, check_version
from config.workspace_files.applying import apply_file
from config.workspace_files.exporting import write_workspace
from config.workspace_files.place import Place
from tests.chat.conftest import Chat
from tests.chat.services.test_check_plans import plan
from tests.chat.services.test_checks import begin, check, finish
from tests.mcp_servers.factories import http_server
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db


@pytest.fixture
def demanding(chat: Chat) -> Chat:
    """A chat whose bud has a check and takes no change that has not passed it."""
    check(chat)
    plan(chat, before_saving=True)
    return chat


def change(chat: Chat, prompt: str = "Say hi", **more: Any) -> Bud:
    values = {"system_prompt": prompt}
    return update_bud(bud=chat.bud, actor=chat.tenant.actor("admin"), values=values, **more)


def checked_with(chat: Chat, answer: str, prompt: str = "Say hi") -> CheckRun:
    """Run the checks with what is about to be saved."""
    chat.model.say(answer)
    values = {"system_prompt": prompt}
    return finish(chat, begin(chat, values=values, provider_id=chat.bud.provider_id))


def changed_file(chat: Chat) -> str:
    """The bud's file, in which it says something else."""
    change(chat, skips_checks=True)
    bud = Bud.objects.for_workspace(chat.tenant.workspace).fetch(chat.bud.pk)
    return write_bud(bud).replace("Say hi", "Say servus", 1)


def prompt_of(chat: Chat) -> tuple[int, str]:
    bud = Bud.objects.for_workspace(chat.tenant.workspace).fetch(chat.bud.pk)
    return bud.version, bud.system_prompt


def unchecked(chat: Chat) -> list[dict[str, Any]]:
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    rows = rows.filter(action=Action.BUD_UNCHECKED.value).order_by("id")
    return list(rows.values_list("details", flat=True))


@pytest.mark.both_engines
def test_a_change_is_saved_once_its_checks_have_passed_with_it(demanding: Chat) -> None:
    """REL-1180: not before, not with another change, and the version keeps the run."""
    before = prompt_of(demanding)
    with pytest.raises(ChecksNotPassed, match="Run them with this change first"):
        change(demanding)
    assert checked_with(demanding, "good day").passed == 0
    with pytest.raises(ChecksNotPassed, match="Only 0 of 1 checks"):
        change(demanding)
    assert prompt_of(demanding) == before
    run = checked_with(demanding, "hi")
    with pytest.raises(ChecksNotPassed):
        change(demanding, "Say something else")
    assert change(demanding).version == before[0] + 1
    run.refresh_from_db()
    assert run.version == before[0] + 1
    assert unchecked(demanding) == []


def test_what_changes_no_answer_needs_no_checks(demanding: Chat) -> None:
    """REL-1180: a name or a description. Nor does a bud that demands nothing."""
    actor = demanding.tenant.actor("admin")
    update_bud(bud=demanding.bud, actor=actor, values={"description": "New"})
    plan(demanding, before_saving=False)
    assert change(demanding).system_prompt == "Say hi"


def test_who_insists_is_in_the_log(demanding: Chat) -> None:
    """REL-1181, SEC-577: with the run that did not pass, if there was one."""
    run = checked_with(demanding, "good day")
    version = change(demanding, skips_checks=True).version
    assert unchecked(demanding) == [
        {"version": version, "run": str(run.pk), "passed": 0, "total": 1}
    ]


def test_a_version_whose_checks_passed_comes_back_and_another_does_not(demanding: Chat) -> None:
    """REL-1182: without being checked again. One that was never checked is, first."""
    actor = demanding.tenant.actor("admin")
    checked_with(demanding, "hi")
    good = change(demanding).version
    change(demanding, "Be silent", skips_checks=True)
    restored = restore_version(bud=demanding.bud, number=good, actor=actor, base_version=None)
    assert restored.system_prompt == "Say hi"
    with pytest.raises(ChecksNotPassed):
        restore_version(bud=demanding.bud, number=good + 1, actor=actor, base_version=None)
    demanding.model.say("hi")
    person = demanding.tenant.admin
    finish(demanding, check_version(bud=demanding.bud, number=good + 1, person=person, actor=actor))
    again = restore_version(bud=demanding.bud, number=good + 1, actor=actor, base_version=None)
    assert again.system_prompt == "Be silent"


def test_a_file_is_imported_once_the_checks_that_it_has_have_passed(demanding: Chat) -> None:
    """REL-1183: with its values and its own checks, also where it changes both."""
    tenant = demanding.tenant
    where: dict[str, Any] = {
        "workspace_id": tenant.workspace.pk,
        "person": tenant.admin,
        "actor": tenant.actor("admin"),
    }
    Bud.objects.for_workspace(tenant.workspace).filter(pk=demanding.bud.pk).update(
        system_prompt="Say hi"
    )
    text = write_bud(Bud.objects.for_workspace(tenant.workspace).fetch(demanding.bud.pk))
    text = text.replace("Say hi", "Say servus").replace("- hi", "- servus")
    before = prompt_of(demanding)
    with pytest.raises(ChecksNotPassed):
        apply_bud(text, **where)
    assert prompt_of(demanding) == before
    without = yaml.safe_dump({**yaml.safe_load(text), "checks": []})
    with pytest.raises(ChecksNotPassed):  # what a file takes away is demanded of it all the same
        apply_bud(without, **where)
    assert prompt_of(demanding) == before
    demanding.model.say("servus")
    finish(demanding, check_file(text, **where))
    assert apply_bud(text, **where)[0].version == before[0] + 1


def test_a_workspaces_file_changes_nothing_that_its_bud_would_refuse(demanding: Chat) -> None:
    """REL-1183: the whole file is refused, and says which bud it is. Once its checks have passed, it goes through."""
    tenant = demanding.tenant
    place = Place(tenant.workspace, tenant.actor("owner"))
    change(demanding, skips_checks=True)
    before = write_workspace(place)
    file = yaml.safe_load(before.replace("Say hi", "Say servus"))
    with pytest.raises(InvalidInput, match=f"“{demanding.bud.name}” takes a change only after"):
        apply_file(place, file)
    assert write_workspace(place) == before
    bud = write_bud(Bud.objects.for_workspace(tenant.workspace).fetch(demanding.bud.pk))
    demanding.model.say("hi")
    actor = tenant.actor("admin")
    where: dict[str, Any] = {
        "workspace_id": tenant.workspace.pk,
        "person": tenant.admin,
        "actor": actor,
    }
    finish(demanding, check_file(bud.replace("Say hi", "Say servus"), **where))
    apply_file(place, file)
    assert prompt_of(demanding)[1] == "Say servus"


def test_a_server_is_put_into_no_bud_that_wants_its_checks_first(demanding: Chat) -> None:
    """REL-1180: it says so at the field, and what to do."""
    actor = demanding.tenant.actor("admin")
    server = http_server(demanding.tenant, "https://mcp.example.org/mcp")
    with pytest.raises(InvalidInput) as refused:
        put_server_into_buds(server=server, bud_ids=[demanding.bud.pk], actor=actor)
    assert "its checks have passed" in refused.value.fields["bud_ids"][0]


def test_over_rest_a_refusal_has_a_code_and_a_way_on(demanding: Chat) -> None:
    """REL-1184: run the checks with the same values, then send the change again; or say that you insist."""
    client = demanding.tenant.client("admin")
    head = {"X-Workspace": demanding.tenant.workspace.slug}
    where = f"/api/buds/{demanding.bud.pk}/"
    asked: dict[str, Any] = {"content_type": "application/json", "headers": head}
    refused = client.patch(where, {"system_prompt": "Say hi"}, **asked)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "checks_not_passed")
    demanding.model.say("hi")
    begun = client.post(f"{where}check-runs/", {"system_prompt": "Say hi"}, **asked)
    assert begun.status_code == 201
    run = CheckRun.objects.for_workspace(demanding.tenant.workspace).get(pk=begun.json()["id"])
    assert finish(demanding, run).passed == 1
    assert client.patch(where, {"system_prompt": "Say hi"}, **asked).status_code == 200
    insists = {"system_prompt": "Be rude", "skip_checks": True}
    assert client.patch(where, insists, **asked).status_code == 200
    assert len(unchecked(demanding)) == 1


def test_on_the_page_a_file_is_imported_after_its_checks_or_if_somebody_insists(
    demanding: Chat,
) -> None:
    """REL-1183, REL-1181: the refusal offers both, the text stays in the field, and insisting is in the log."""
    client = demanding.tenant.client("admin")
    where = reverse("chat:bud_import", args=[demanding.tenant.workspace.slug])
    text = changed_file(demanding)
    refused = client.post(where, {"text": text})
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "takes a change only after its checks have passed" in page
    assert "Run its checks" in page
    assert "Import it though its checks have not passed" in page
    assert refused.context["text"] == text
    demanding.model.say("good day")
    running = client.post(where, {"text": text, "check": "1"})
    assert "Its checks run with this file now." in running.content.decode()
    run = CheckRun.objects.for_workspace(demanding.tenant.workspace).latest("pk")
    assert finish(demanding, run).passed == 0
    assert "Only 0 of 1 checks" in client.post(where, {"text": text}).content.decode()
    assert client.post(where, {"text": text, "skip_checks": "1"}).status_code == 302
    assert prompt_of(demanding)[1] == "Say servus"
    assert [one["run"] for one in unchecked(demanding)] == [None, str(run.pk)]


def test_checks_of_a_file_for_a_new_bud_say_that_it_has_none_to_pass(demanding: Chat) -> None:
    """REL-1183: at the field, and what was typed stays."""
    client = demanding.tenant.client("admin")
    where = reverse("chat:bud_import", args=[demanding.tenant.workspace.slug])
    new = "name: New\nslug: brand-new\nchecks: [{question: Hi, contains: [hi]}]\n"
    answer = client.post(where, {"text": new, "check": "1"})
    assert answer.status_code == 422
    assert "There is no bud of this short name yet." in answer.content.decode()
    assert answer.context["text"] == new
    assert client.post(where, {"text": new}).status_code == 302


def test_over_rest_a_file_and_a_version_are_checked_first_or_insisted_on(demanding: Chat) -> None:
    """REL-1184, REL-1181: each has its way on, and its code."""
    client = demanding.tenant.client("admin")
    asked: dict[str, Any] = {
        "content_type": "application/json",
        "headers": {"X-Workspace": demanding.tenant.workspace.slug},
    }
    bud = f"/api/buds/{demanding.bud.pk}/"

    def code(answer: Any) -> tuple[int, str]:
        return answer.status_code, answer.json()["errors"][0]["code"]

    def passes(begun: Any) -> None:
        assert begun.status_code == 201
        run = CheckRun.objects.for_workspace(demanding.tenant.workspace).get(pk=begun.json()["id"])
        assert finish(demanding, run).passed == 1

    text = changed_file(demanding)
    file = {"yaml": text}
    assert code(client.post("/api/buds/import/", file, **asked)) == (409, "checks_not_passed")
    demanding.model.say("hi")
    passes(client.post("/api/buds/check-file/", file, **asked))
    assert client.post("/api/buds/import/", file, **asked).status_code == 200
    ruder = {"yaml": text.replace("Say servus", "Be rude"), "skip_checks": True}
    assert client.post("/api/buds/import/", ruder, **asked).status_code == 200
    rude, _ = prompt_of(demanding)
    change(demanding, "Be kind", skips_checks=True)
    back = {"number": rude}
    assert code(client.post(f"{bud}restore/", back, **asked)) == (409, "checks_not_passed")
    insists = {**back, "skip_checks": True}
    assert client.post(f"{bud}restore/", insists, **asked).status_code == 200
    change(demanding, "Be kind again", skips_checks=True)
    demanding.model.say("hi")
    passes(client.post(f"{bud}check-runs/", back, **asked))
    assert client.post(f"{bud}restore/", back, **asked).status_code == 200
    assert prompt_of(demanding)[1] == "Be rude"
