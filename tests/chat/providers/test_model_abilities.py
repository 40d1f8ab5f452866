"""Whether a model calls tools and whether it reasons: found, corrected by an admin, and seen on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from audit.models import AuditEntry
from chat.models import ModelProvider, ProviderModel
from chat.services.provider_check import check_provider, keep_facts
from tests.chat.conftest import Chat
from tests.chat.engine.asking import FENCED, answers, set_bud
from tests.fakes.scripted_model import DONE, Answer, chunk


def known(chat: Chat, **facts: Any) -> ProviderModel:
    """What is known of the model that answers here."""
    return ProviderModel.objects.create(
        workspace=chat.tenant.workspace, provider=chat.bud.provider, model="m", **facts
    )


def test_a_model_that_calls_no_tools_gets_none(chat: Chat) -> None:
    """REL-830: in no form, also of earlier calls; the person is told, and what looks like a call is text."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("It said hi")
    chat.ask()
    row = known(chat, calls_tools=False)
    for protocol in ("auto", "native", "fenced_json"):
        set_bud(chat, tool_protocol=protocol)
        chat.model.say(FENCED)
        turn = chat.ask(f"again, {protocol}")
        sent = chat.model.requests[-1]
        assert not {"tools", "tool_choice"} & set(sent)
        assert all("tool_calls" not in one and one["role"] != "tool" for one in sent["messages"])
        assert "You can use tools" not in json.dumps(sent)
        assert answers(chat)[-1].text == FENCED
        assert "m does not call tools, so it is not offered the tools of this bud." in turn.notice
    assert chat.server.calls == [("echo", {"text": "hi"})]
    page = chat.tenant.client("admin").get(f"/w/{chat.tenant.workspace.slug}/buds/{chat.bud.pk}/")
    assert "m does not call tools" in " ".join(page.context["problems"])
    assert "calls no tools, so this bud&#x27;s are not offered to it" in page.content.decode()
    row.calls_tools = None
    row.save()
    set_bud(chat, tool_protocol="auto")
    chat.model.say("Back")
    assert chat.ask("with tools").notice == ""
    assert "tools" in chat.model.requests[-1]


@pytest.mark.parametrize(
    ("stated", "corrected", "form"),
    [
        (False, None, "words"),
        (False, True, "functions"),
        (True, False, "none"),
        (None, None, "functions"),
    ],
)
def test_an_admins_word_on_tools_comes_before_the_providers(
    chat: Chat, stated: bool | None, corrected: bool | None, form: str
) -> None:
    """REL-830: what the provider says alone decides on the form: a model without functions reads of tools in words."""
    known(chat, told_calls_tools=stated, calls_tools=corrected)
    chat.model.say("Hello")
    chat.ask()
    [sent] = chat.model.requests
    assert ("tools" in sent) is (form == "functions")
    assert ("You can use tools" in json.dumps(sent)) is (form == "words")


@pytest.mark.parametrize(
    ("stated", "corrected", "reasons"),
    [
        (True, None, True),
        (None, True, True),
        (False, True, True),
        (True, False, False),
        (None, None, None),
    ],
)
def test_a_model_that_reasons_is_asked_as_one(
    chat: Chat, stated: bool | None, corrected: bool | None, reasons: bool | None
) -> None:
    """REL-831: its limit has the name that counts thoughts; one that does not gets the plain name, and thinks nothing."""
    known(chat, told_reasons=stated, reasons=corrected)
    set_bud(chat, parameters={"max_tokens": 500, "temperature": 0.5})
    words = "<think>Hm.</think>Yes"
    chat.model.give(Answer([chunk({"content": words}), chunk({}, "stop"), DONE]))
    chat.ask()
    [sent] = chat.model.requests
    names = {name for name in sent if name.startswith("max_")}
    assert names == ({"max_completion_tokens"} if reasons else {"max_tokens"})
    assert sent["temperature"] == 0.5
    answer = answers(chat)[-1]
    expected = (words, "") if reasons is False else ("Yes", "Hm.")
    assert (answer.text, answer.reasoning) == expected


def test_an_admin_corrects_abilities_and_leaves_them_to_what_was_found(chat: Chat) -> None:
    """REL-832: in the provider's form and on its page, with an entry in the log; people see them where they choose."""
    [provider] = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    chat.model.models = {"data": [{"id": "m", "supported_parameters": ["tools"]}]}
    actor = chat.tenant.actor("admin")
    listing = check_provider(provider=provider, actor=actor)
    keep_facts(provider=provider, names=["m"], listing=listing, actor=actor)
    row = ProviderModel.objects.for_workspace(chat.tenant.workspace).get()
    assert (row.calls_tools, row.tools_known) == (None, True)
    assert (row.reasons, row.reasoning_known) == (None, False)
    client = chat.tenant.client("admin")
    url = f"/admin/chat/modelprovider/{provider.pk}/change/"
    page = client.get(url).content.decode()
    assert "Automatic: yes" in page
    assert "Automatic: no" in page
    corrected = {
        "name": provider.name,
        "base_url": provider.base_url,
        "default_model": "m",
        "is_active": "on",
        "known_models-TOTAL_FORMS": "1",
        "known_models-INITIAL_FORMS": "1",
        "known_models-0-id": str(row.pk),
        "known_models-0-provider": str(provider.pk),
        "known_models-0-model": "m",
        "known_models-0-calls_tools": "False",
        "known_models-0-reasons": "True",
    }
    assert client.post(url, corrected).status_code == 302
    row.refresh_from_db()
    assert (row.calls_tools, row.tools_known) == (False, False)
    assert (row.reasons, row.reasoning_known) == (True, True)
    log = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(action="config.changed")
    assert any("calls_tools" in json.dumps(entry.details) for entry in log)
    keep_facts(provider=provider, names=["m"], listing=listing, actor=actor)
    row.refresh_from_db()
    assert (row.calls_tools, row.reasons) == (False, True)
    head = {"X-Workspace": chat.tenant.workspace.slug}
    body = client.get("/api/models/", headers=head).json()
    [one] = [one for one in body if one["name"] == "m"]
    assert (one["calls_tools"], one["gets_tools"], one["reasons"]) == (False, False, True)
    automatic = {**corrected, "known_models-0-calls_tools": "", "known_models-0-reasons": ""}
    client.post(url, automatic)
    row.refresh_from_db()
    assert (row.tools_known, row.reasoning_known) == (True, False)
    shown = client.get(f"/w/{chat.tenant.workspace.slug}/providers/{provider.pk}/")
    assert "Automatic: yes" in shown.content.decode()
