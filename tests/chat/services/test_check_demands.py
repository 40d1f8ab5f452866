"""A bud that demands its checks before saving: every road to a new version keeps to it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from audit.actions import Action
from audit.models import AuditEntry
from chat.models import Bud, CheckRun, ModelProvider
from chat.services.bud_versions import restore_version
from chat.services.bud_yaml import apply_bud, write_bud
from chat.services.buds import create_bud, put_server_into_buds, update_bud
from chat.services.check_demands import ChecksNotPassed
from chat.services.check_plans import change_plan, plan_of
from chat.services.checks import add_check
from chat.services.checks_before_saving import check_file, check_version
from config.workspace_files import (
    ChecksMissing,
    WorkspaceTarget,
    apply_file,
    check_buds,
    write_workspace,
)
from tests.chat.conftest import Chat
from tests.chat.services.checking import begin, check, finish
from tests.factories import make_tenant
from tests.mcp_servers.factories import http_server
from workspaces.errors import InvalidInput, PermissionDenied

pytestmark = pytest.mark.django_db


@pytest.fixture
def demanding(chat: Chat) -> Chat:
    """A chat whose bud has a check and takes no change that has not passed it."""
    check(chat)
    demand(chat, is_on=True)
    return chat


def demand(chat: Chat, *, is_on: bool) -> None:
    actor = chat.tenant.actor("admin")
    change_plan(bud=chat.bud, actor=actor, before_saving=is_on)


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
    demand(demanding, is_on=False)
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


def test_a_version_that_lost_something_has_to_pass_anew(demanding: Chat) -> None:
    """REL-1305: its checks had passed with the provider that was deleted since, and not with another one."""
    actor = demanding.tenant.actor("admin")
    first = demanding.bud.provider
    assert first is not None
    checked_with(demanding, "hi")
    good = change(demanding).version
    other = ModelProvider.objects.create(
        workspace=demanding.tenant.workspace,
        name="Other",
        base_url=demanding.model.base_url,
        default_model="m",
    )
    update_bud(
        bud=demanding.bud,
        actor=actor,
        values={"system_prompt": "Be silent"},
        provider_id=other.pk,
        has_provider=True,
        skips_checks=True,
    )
    first.delete()
    demanding.bud.refresh_from_db()
    with pytest.raises(ChecksNotPassed):
        restore_version(bud=demanding.bud, number=good, actor=actor, base_version=None)
    demanding.model.say("hi")
    person = demanding.tenant.admin
    finish(demanding, check_version(bud=demanding.bud, number=good, person=person, actor=actor))
    restored = restore_version(bud=demanding.bud, number=good, actor=actor, base_version=None)
    assert (restored.system_prompt, restored.provider_id) == ("Say hi", other.pk)


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
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
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


def servus(chat: Chat) -> tuple[WorkspaceTarget, dict[str, Any]]:
    """The workspace, and its file in which the bud says something else."""
    place = WorkspaceTarget(chat.tenant.workspace, chat.tenant.actor("owner"))
    change(chat, skips_checks=True)
    return place, yaml.safe_load(write_workspace(place).replace("Say hi", "Say servus"))


def test_the_checks_of_a_workspaces_file_run_beforehand(demanding: Chat) -> None:
    """REL-1225: of all its buds that demand them. A file that needs none says so."""
    place, file = servus(demanding)
    person = demanding.tenant.owner
    demanding.model.say("hi")
    [run] = check_buds(place, file, person=person)
    assert check_buds(place, file, person=person) == []
    assert "running already" in place.notes.pop()
    finish(demanding, run)
    assert run.passed == 1
    assert prompt_of(demanding)[1] == "Say hi"
    apply_file(place, file)
    assert prompt_of(demanding)[1] == "Say servus"
    with pytest.raises(InvalidInput, match="No bud demands"):
        check_buds(place, file, person=person)
    with pytest.raises(PermissionDenied):
        check_buds(
            WorkspaceTarget(place.workspace, demanding.tenant.actor("admin")), file, person=person
        )


def test_no_checks_of_a_workspaces_file_run_if_one_bud_is_refused(demanding: Chat) -> None:
    """REL-1225: a file is checked as a whole; nobody pays for half of it."""
    place, file = servus(demanding)
    actor = demanding.tenant.actor("admin")
    second = create_bud(
        workspace_id=place.pk, actor=actor, values={"slug": "second", "name": "Second"}
    )
    add_check(bud=second, values={"question": "Say hi", "contains": ["hi"]}, actor=actor)
    change_plan(bud=second, actor=actor, before_saving=True)
    wanted = {"slug": "second", "name": "Second", "provider": "nowhere"}
    with pytest.raises(InvalidInput) as refused:
        check_buds(place, {**file, "buds": [*file["buds"], wanted]}, person=demanding.tenant.owner)
    assert list(refused.value.fields) == ["buds.second.provider"]
    assert not CheckRun.objects.for_workspace(place.pk).exists()


def test_who_insists_on_a_workspaces_file_is_in_the_log(demanding: Chat) -> None:
    """REL-1226, SEC-577: the refusal says that one can; then the whole file applies."""
    place, file = servus(demanding)
    warned = len(unchecked(demanding))
    with pytest.raises(ChecksMissing) as refused:
        apply_file(place, file)
    assert list(refused.value.fields) == [f"buds.{demanding.bud.slug}"]
    apply_file(place, file, skips_checks=True)
    assert prompt_of(demanding)[1] == "Say servus"
    assert len(unchecked(demanding)) == warned + 1


def test_a_file_says_that_a_bud_demands_its_checks(demanding: Chat) -> None:
    """REL-1227: left out, it stays as it is. A file that ends it changes nothing else without them."""
    place, _ = servus(demanding)
    document = yaml.safe_load(write_workspace(place))
    [bud] = [one for one in document["buds"] if one["slug"] == demanding.bud.slug]
    assert bud["checks_before_saving"] is True
    del bud["checks_before_saving"]
    apply_file(place, document)
    assert plan_of(demanding.bud).before_saving
    bud |= {"checks_before_saving": False, "instructions": "Say servus"}
    with pytest.raises(ChecksMissing):
        apply_file(place, document)
    assert plan_of(demanding.bud).before_saving
    apply_file(place, {"buds": [{**bud, "instructions": "Say hi"}]})
    assert not plan_of(demanding.bud).before_saving
    bud["checks_before_saving"] = True
    elsewhere = make_tenant("elsewhere")
    there = WorkspaceTarget(elsewhere.workspace, elsewhere.actor("owner"))
    new = {name: bud[name] for name in ("name", "slug", "checks", "checks_before_saving")}
    apply_file(there, {"buds": [new]})
    assert plan_of(Bud.objects.for_workspace(elsewhere.workspace).get()).before_saving


def test_checks_of_a_workspaces_file_begin_over_rest_and_on_its_page(demanding: Chat) -> None:
    """REL-1225, REL-1226: with a link to each bud; whoever may not apply the file may not begin them either."""
    place, file = servus(demanding)
    client = demanding.tenant.client("owner", headers={"X-Workspace": place.workspace.slug})
    text, page = yaml.safe_dump(file), reverse("workspace_file", args=[place.workspace.slug])
    refused = client.post(page, {"text": text})
    assert refused.status_code == 422
    assert "Run the checks" in refused.content.decode()
    demanding.model.say("hi")
    shown = client.post(page, {"text": text, "check": "1"})
    assert (shown.status_code, f"{demanding.bud.pk}/#checks" in shown.content.decode()) == (
        200,
        True,
    )
    [run] = CheckRun.objects.for_workspace(place.pk).filter(status="running")
    finish(demanding, run)
    demanding.model.say("hi")
    begun = client.post("/api/config/check-runs/", file, content_type="application/json")
    assert (begun.status_code, len(begun.json()["runs"]), begun.json()["notes"]) == (201, 1, [])
    finish(
        demanding, CheckRun.objects.for_workspace(place.pk).get(pk=begun.json()["runs"][0]["id"])
    )
    admin = demanding.tenant.client("admin", headers={"X-Workspace": place.workspace.slug})
    denied = admin.post("/api/config/check-runs/", file, content_type="application/json")
    assert denied.status_code == 403
    insisted = client.post(page, {"text": text, "apply": "1", "skip_checks": "1"})
    assert insisted.status_code == 302
    assert prompt_of(demanding)[1] == "Say servus"


def test_apply_runs_checks_and_insists(demanding: Chat, tmp_path: Path) -> None:
    """REL-1225, REL-1226: in a terminal; the refusal names both options."""
    place, file = servus(demanding)
    path = tmp_path / "workspace.yaml"
    path.write_text(yaml.safe_dump(file))
    who = ("--workspace", place.workspace.slug, "--user", demanding.tenant.owner.email)

    def run(*options: str) -> str:
        output = StringIO()
        call_command("apply", str(path), *who, *options, stdout=output)
        return output.getvalue()

    with pytest.raises(CommandError, match="--run-checks"):
        run()
    demanding.model.say("good day")
    with pytest.raises(CommandError, match="Not all checks have run and passed"):
        run("--run-checks")
    demanding.model.say("hi")
    assert "1 of 1 passed." in run("--run-checks")
    assert "Say servus" in run()
    path.write_text(yaml.safe_dump(file).replace("Say servus", "Be brief"))
    assert "Be brief" in run("--skip-bud-checks")
    assert prompt_of(demanding)[1] == "Be brief"


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
    assert refused.context["given"].text == text
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
    assert answer.context["given"].text == new
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
