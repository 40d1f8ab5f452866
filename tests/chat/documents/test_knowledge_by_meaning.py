"""Knowledge that is found by what it means: preparing files, searching them, and what happens when a provider fails."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import SecretStr

from audit.models import AuditEntry
from chat.artifacts import meaning
from chat.artifacts.knowledge import search_passages
from chat.artifacts.meaning import knowledge_listed
from chat.models import (
    Bud,
    Conversation,
    KnowledgeFile,
    KnowledgePreparation,
    ModelProvider,
    PassageVector,
)
from chat.providers.choosing import platform_provider
from chat.providers.spending import Payer
from chat.reporting import jobs, usage
from chat.services import preparing_knowledge
from chat.services.bud_versions import duplicate_bud
from chat.services.knowledge import add_knowledge, remove_knowledge
from chat.services.preparing_knowledge import prepare_due
from tests.chat.conftest import Chat
from tests.factories import make_tenant
from tests.fakes.scripted_model import Answer
from tests.patience import PATIENCE
from workspaces.database import database_now

RULES = b"Thirty days of vacation."
QUESTION = "holidays"
"""None of its words stands in the files."""


def learn(chat: Chat, name: str, content: bytes) -> KnowledgeFile:
    """Give the chat's bud a file."""
    return add_knowledge(bud=chat.bud, name=name, content=content, actor=chat.tenant.actor("admin"))


def embed_with(chat: Chat, model: str, **values: Any) -> ModelProvider:
    """Name the provider's embedding model."""
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.update(embedding_model=model, updated_at=database_now(), **values)
    return rows.get(name="scripted")


def preparation(file: KnowledgeFile) -> KnowledgePreparation:
    rows = KnowledgePreparation.objects.for_workspace(file.workspace_id)
    found: KnowledgePreparation = rows.get(file=file)
    return found


def come_due(file: KnowledgeFile) -> None:
    """Let the pause before the next attempt be over."""
    rows = KnowledgePreparation.objects.for_workspace(file.workspace_id)
    rows.filter(file=file).update(due_at=database_now() - timedelta(seconds=1))


def found(chat: Chat, query: str = QUESTION, **more: str) -> str:
    """What the bud's model reads when it searches."""
    chat.model.call(("search_knowledge", {"query": query, **more}))
    chat.model.say("Done")
    chat.ask()
    return chat.calls()[-1].model_text


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes long to answer, and that is not what these tests are about."""
    monkeypatch.setattr(meaning, "QUERY_SECONDS", PATIENCE)


@pytest.fixture
def knowing(chat: Chat) -> Chat:
    """A chat whose bud has a file that is prepared."""
    learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-small")
    assert prepare_due() == 1
    return chat


@pytest.mark.both_engines
def test_a_question_in_other_words_finds_the_passage(chat: Chat) -> None:
    """REL-620: by words alone it does not; the result, its marks and the log are those of every search."""
    learn(chat, "rules.md", RULES)
    learn(chat, "menu.txt", b"Soup, bread and cheese.")
    assert "Nothing was found" in found(chat)
    embed_with(chat, "embed-small")
    prepare_due()
    passages = found(chat)
    first = passages.split("\n\n")[1]
    assert first.startswith("[rules.md, line 1] (line 1 to 1)\nThirty days of vacation.")
    assert "words only" not in passages
    assert "[menu.txt" not in passages
    assert "[menu.txt" not in found(chat, name="rules.md")
    texts = {one for request in chat.model.embedded for one in request["input"]}
    assert {"Soup, bread and cheese.", QUESTION} <= texts
    assert {one["key"] for one in chat.model.embedded} == {"Bearer sk-scripted-canary-0123456789"}
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(
        tool_name="search_knowledge", action="tool_call.finished"
    )
    logged = [{one["name"] for one in entry.details["knowledge"]} for entry in entries]
    assert any("rules.md" in names for names in logged)


@pytest.mark.both_engines
def test_buds_of_the_platforms_provider_find_by_meaning_too(chat: Chat, settings: Any) -> None:
    """REL-658: with its embedding model, named in a setting; a bud that changes its provider is prepared anew by that one."""
    update = {
        "openai_base_url": chat.model.base_url,
        "openai_api_key": SecretStr("sk-platform"),
        "openai_model": "m",
        "openai_embedding_model": None,
    }
    settings.TRELLIS = settings.TRELLIS.model_copy(update=update)
    platform_provider.cache_clear()
    try:
        own = chat.bud.provider
        answer_with(chat, None)
        file = learn(chat, "rules.md", RULES)
        assert prepare_due() == 0
        assert "Nothing was found" in found(chat)
        named = {"openai_embedding_model": "embed-small"}
        settings.TRELLIS = settings.TRELLIS.model_copy(update=named)
        assert prepare_due() == 1
        assert (preparation(file).provider, preparation(file).model) == (None, "embed-small")
        assert prepare_due() == 0
        assert found(chat).split("\n\n")[1].startswith("[rules.md")
        assert {one["key"] for one in chat.model.embedded} == {"Bearer sk-platform"}
        assert knowledge_listed(chat.bud, [file])[0]["meaning"]["state"] == "ready"
        answer_with(chat, own)
        embed_with(chat, "embed-small")
        assert prepare_due() == 1
        assert preparation(file).provider == own
        answer_with(chat, None)
        assert prepare_due() == 1
        assert preparation(file).provider is None
    finally:
        platform_provider.cache_clear()


def answer_with(chat: Chat, provider: ModelProvider | None) -> None:
    """Give the chat's bud another provider."""
    Bud.objects.for_workspace(chat.bud.workspace_id).filter(pk=chat.bud.pk).update(
        provider=provider
    )
    chat.bud.provider = provider


@pytest.mark.both_engines
def test_both_rankings_are_merged(knowing: Chat) -> None:
    """REL-620: what fits by words and by meaning comes first, and the words alone still find their passage."""
    learn(knowing, "more.md", b"On public holidays nobody works.")
    learn(knowing, "codes.txt", b"The code of the gate is xk42.")
    prepare_due()
    passages = found(knowing, "holidays")
    assert passages.index("[more.md") < passages.index("[rules.md")
    assert found(knowing, "xk42").split("\n\n")[1].startswith("[codes.txt")


def test_preparing_goes_on_where_it_stopped(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-621: batch by batch, in any process, and nothing is asked for or stored twice."""
    monkeypatch.setattr(preparing_knowledge, "BATCH", 2)
    learn(chat, "book.md", b"\n".join(b"%d" % n + b" word" * 230 for n in range(5)))
    embed_with(chat, "embed-small")
    list_path = f"/api/buds/{chat.bud.pk}/knowledge/"
    client = chat.tenant.client("admin")

    def state() -> dict[str, Any]:
        answer: dict[str, Any] = client.get(list_path).json()[0]["meaning"]
        return answer

    assert (state()["state"], state()["passages"]) == ("preparing", 0)
    monkeypatch.setattr(preparing_knowledge, "_TURN_SECONDS", -1.0)
    work = preparing_knowledge._take_on()
    assert work is not None
    assert preparing_knowledge._take_on() is None  # another process leaves it alone
    assert preparing_knowledge._go_on(work, 0.0) == 1
    assert (state()["done"], state()["passages"]) == (2, 5)
    assert prepare_due() == 2
    assert state()["state"] == "ready"
    assert [len(one["input"]) for one in chat.model.embedded] == [2, 2, 1]
    assert PassageVector.objects.for_workspace(chat.tenant.workspace).count() == 5
    assert prepare_due() == 0


def test_a_file_is_searched_by_words_until_it_is_ready(chat: Chat) -> None:
    """REL-621: and the provider is not asked what a search means before that."""
    learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-small")
    assert "1 passage fits." in found(chat, "vacation")
    assert chat.model.embedded == []


@pytest.mark.parametrize("lists", [False, True])
def test_servers_may_send_numbers_in_either_form(chat: Chat, lists: bool) -> None:
    """REL-619: asked in OpenAI's form, read as base64 or as lists."""
    chat.model.sends_lists = lists
    file = learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-small")
    prepare_due()
    (asked,) = chat.model.embedded
    assert asked["model"] == "embed-small"
    assert asked["input"] == ["Thirty days of vacation."]
    assert asked["encoding_format"] == "base64"
    assert preparation(file).numbers == 256


def test_what_went_wrong_is_told_and_tried_again(chat: Chat) -> None:
    """REL-621: in plain words, after a pause; correcting the provider ends the pause."""
    file = learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-gone")
    assert prepare_due() == 0
    answer = chat.tenant.client("member").get(f"/api/knowledge/{file.pk}/").json()["meaning"]
    assert answer["state"] == "words_only"
    assert answer["fault"] == "The model provider does not offer the embedding model “embed-gone”."
    assert answer["again_at"] > file.created_at.isoformat()
    assert len(chat.model.embedded) == 1
    assert prepare_due() == 0
    assert len(chat.model.embedded) == 1
    (job,) = [one for one in jobs(chat.tenant.workspace.pk) if "Knowledge" in one.name]
    assert (job.waiting, job.failed) == (1, 1)
    embed_with(chat, "embed-gone")
    chat.model.embedding_models["embed-gone"] = 64
    assert prepare_due() == 1
    assert preparation(file).finished_at is not None


def test_one_broken_file_keeps_no_other_from_being_prepared(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-621: whatever goes wrong with it."""
    broken, sound = learn(chat, "broken.md", b"Broken"), learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-small")
    begin = preparing_knowledge._next_passages

    def fail_once(row: KnowledgePreparation) -> Any:
        if row.file_id == broken.pk:
            raise ZeroDivisionError
        return begin(row)

    monkeypatch.setattr(preparing_knowledge, "_next_passages", fail_once)
    assert prepare_due() == 1
    assert preparation(broken).fault == preparing_knowledge.UNFORESEEN
    assert preparation(sound).finished_at is not None


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer([b'{"error":"busy"}'], 429, {"retry-after": "900"}), "too many requests"),
        (Answer([b'{"data":[]}'], 200, {}), "not with embeddings"),
        (Answer([b'{"data":[{"embedding":[0,0]}]}'], 200, {}), "not with embeddings"),
        (Answer([b'{"data":[{"embedding":"AAA"}]}'], 200, {}), "not with embeddings"),
        (Answer([b"<html>"], 200, {}), "not with embeddings"),
        (Answer([b"{}"], 401, {}), "refused the API key"),
    ],
)
def test_broken_answers_leave_a_file_found_by_words(chat: Chat, answer: Answer, code: str) -> None:
    """REL-619: typed, as other failures of the provider; the pause is as long as it wants."""
    file = learn(chat, "rules.md", RULES)
    embed_with(chat, "embed-small")
    chat.model.embedding_answers.append(answer)
    assert prepare_due() == 0
    row = preparation(file)
    assert code in row.fault
    least = 890 if answer.status == 429 else 20
    assert row.due_at > database_now() + timedelta(seconds=least)
    come_due(file)
    assert prepare_due() == 1
    assert preparation(file).fault == ""


def test_texts_that_are_too_long_go_in_pieces(chat: Chat) -> None:
    """REL-619: a model that reads little gets smaller requests, and at last the beginning of a passage."""
    learn(chat, "book.md", b"\n".join(b"%d" % n + b" word" * 230 for n in range(2)))
    embed_with(chat, "embed-small")
    too_long = b'{"error":{"message":"input is too long for the context length of this model"}}'
    for _ in range(2):
        chat.model.embedding_answers.append(Answer([too_long], 400, {}))
    assert prepare_due() == 1
    sent = [[len(text) for text in one["input"]] for one in chat.model.embedded]
    assert [len(one) for one in sent] == [2, 1, 1, 1]
    assert sent[2][0] == sent[1][0] // 2


def test_a_provider_that_is_silent_leaves_the_words(
    knowing: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-622, REL-657: after a short while the search goes on without it, the model is told so, and the next ones do not wait."""
    hold = threading.Event()
    knowing.model.embedding_answers.append(Answer([hold]))
    with monkeypatch.context() as patch:
        patch.setattr(meaning, "QUERY_SECONDS", 0.1)
        passages = found(knowing, "vacation")
    hold.set()
    assert "Thirty days of vacation." in passages
    assert passages.endswith(f"[{meaning.WORDS_ONLY}]")
    asked = len(knowing.model.embedded)
    assert found(knowing, "vacation") == passages
    assert len(knowing.model.embedded) == asked
    meaning.recent_failures.clear()  # as time does
    knowing.model.embedding_answers.append(Answer([b"{}"], 500, {}))
    assert "Nothing was found" in found(knowing)
    meaning.recent_failures.clear()
    assert "[rules.md" in found(knowing)


def test_another_model_prepares_everything_anew(knowing: Chat) -> None:
    """REL-623: vectors of two models are never compared; meanwhile words are searched."""
    embed_with(knowing, "embed-large")
    knowing.model.embedding_models["embed-large"] = 512
    assert "Nothing was found" in found(knowing)
    assert prepare_due() == 1
    assert [len(bytes(row.numbers)) for row in PassageVector.unscoped.all()] == [512]
    assert "[rules.md" in found(knowing)
    embed_with(knowing, "")
    before = len(knowing.model.embedded)
    assert "Nothing was found" in found(knowing)
    assert len(knowing.model.embedded) == before


def test_vectors_go_with_their_file(knowing: Chat) -> None:
    """REL-623: nothing of a file stays; a copy of a bud is prepared for itself."""
    copy = duplicate_bud(bud=knowing.bud, actor=knowing.tenant.actor("admin"))
    assert prepare_due() == 1
    assert KnowledgePreparation.unscoped.count() == 2
    file = KnowledgeFile.objects.for_workspace(copy.workspace_id).get(bud=knowing.bud)
    remove_knowledge(file=file, actor=knowing.tenant.actor("admin"))
    assert PassageVector.unscoped.count() == 1
    copy.delete()
    assert not PassageVector.unscoped.exists()


def test_a_bud_that_knows_too_much_is_searched_by_words(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-623: what vectors take is bounded, and the file says so."""
    monkeypatch.setattr(preparing_knowledge, "MOST_PASSAGES", 1)
    learn(chat, "rules.md", RULES)
    other = learn(chat, "menu.txt", b"Soup")
    embed_with(chat, "embed-small")
    assert prepare_due() == 1
    assert preparation(other).fault == preparing_knowledge.TOO_MANY


def test_people_go_first_where_a_provider_has_limits(chat: Chat) -> None:
    """REL-624: preparing takes at most half of what a provider may be asked, and waits where somebody waits."""
    file = learn(chat, "rules.md", RULES)
    learn(chat, "menu.txt", b"Soup")
    embed_with(chat, "embed-small", most_a_minute=2)
    assert prepare_due() == 1
    assert len(chat.model.embedded) == 1
    assert preparation(file).finished_at is not None
    assert KnowledgePreparation.unscoped.filter(finished_at=None, fault="").count() == 1


def test_tokens_count_as_usage(knowing: Chat) -> None:
    """REL-624: those of files in the workspace's reports, those of a search with its conversation."""
    file = KnowledgeFile.unscoped.get()
    row = preparation(file)
    assert (row.tokens, row.cost) == (4, None)
    since = database_now() - timedelta(hours=1)
    until = database_now() + timedelta(hours=1)
    (counted,) = usage(knowing.tenant.workspace.pk, since, until)
    assert (counted.model, counted.turns, counted.prompt_tokens) == ("embed-small", 0, 4)
    found(knowing)
    conversation = Conversation.unscoped.get(pk=knowing.conversation.pk)
    assert conversation.prompt_tokens == 2 * 7 + 1


def test_a_price_makes_a_cost(chat: Chat) -> None:
    """REL-624: one price is enough, for such a model writes nothing."""
    provider = embed_with(chat, "embed-small")
    provider.known_models.create(
        workspace=chat.tenant.workspace, model="embed-small", prompt_price=Decimal(500)
    )
    file = learn(chat, "rules.md", RULES)
    prepare_due()
    assert preparation(file).cost == Decimal("0.002")


def test_nobody_finds_what_another_bud_or_workspace_knows(knowing: Chat) -> None:
    """SEC-400: vectors go through the tenant's door, and only those of the bud's own files are compared."""
    tenant = make_tenant("other")
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="scripted",
        base_url=knowing.model.base_url,
        default_model="m",
        embedding_model="embed-small",
    )
    stranger = Bud.objects.create(
        workspace=tenant.workspace, slug="s", name="S", provider=provider, has_knowledge=True
    )
    add_knowledge(
        bud=stranger, name="x.md", content=b"Holidays abroad", actor=tenant.actor("admin")
    )
    neighbour = duplicate_bud(bud=knowing.bud, actor=knowing.tenant.actor("admin"))
    prepare_due()
    assert PassageVector.unscoped.count() == 3
    passages = found(knowing)
    assert passages.startswith("1 passage fits.")
    assert "abroad" not in passages
    rows = KnowledgePreparation.objects.for_workspace(tenant.workspace)
    payer = Payer(
        workspace_id=knowing.tenant.workspace.pk, actor=knowing.tenant.actor(), purpose="search"
    )
    sought = meaning.KnowledgeQuery(knowing.bud, QUESTION, payer)
    sought._prepared = (
        rows.get().pk,
        KnowledgePreparation.unscoped.get(file__bud=neighbour).pk,
    )
    sought._vector = [1.0] * 256
    assert sought.nearest(10) == []


def test_texts_go_to_the_buds_own_provider_alone(chat: Chat) -> None:
    """SEC-401: not to another one of the workspace, nor to one that is off, nor to the platform's."""
    learn(chat, "rules.md", RULES)
    with_one = ModelProvider.objects.create(
        workspace=chat.tenant.workspace,
        name="another",
        base_url=chat.model.base_url,
        default_model="m",
        embedding_model="embed-small",
    )
    assert prepare_due() == 0
    embed_with(chat, "embed-small", is_active=False)
    assert prepare_due() == 0
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=None)
    assert prepare_due() == 0
    assert chat.model.embedded == []
    assert with_one.buds.count() == 0


def test_only_those_who_manage_models_choose_one(chat: Chat) -> None:
    """SEC-402: on the page, in the form and over REST; the choice is in the log, and the form says what is sent."""
    provider = embed_with(chat, "")
    page = f"/w/{chat.tenant.workspace.slug}/providers/{provider.pk}/"
    assert chat.tenant.client("member").post(page, {"embedding_model": "m"}).status_code == 403
    path = f"/api/providers/{provider.pk}/"
    body = json.dumps({"embedding_model": "embed-small"})
    assert chat.tenant.client("member").patch(path, body, "application/json").status_code in (
        403,
        404,
    )
    editor = f"/w/{chat.tenant.workspace.slug}/buds/{chat.bud.pk}/"
    assert chat.tenant.client("admin").get(editor).context["embedding_page"] == page
    changed = chat.tenant.client("admin").patch(path, body, "application/json")
    assert changed.json()["embedding_model"] == "embed-small"
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    assert any("embed-small" in json.dumps(entry.details) for entry in entries)
    assert chat.tenant.client("admin").get(editor).context["embedding_page"] == ""
    form = chat.tenant.client("admin").get(f"/admin/chat/modelprovider/{provider.pk}/change/")
    assert "whole text of their knowledge files" in form.content.decode()


def test_testing_a_connection_offers_and_tries_an_embedding_model(chat: Chat) -> None:
    """REL-619: offered by its name, used once it has answered, and tried with every test."""
    provider = embed_with(chat, "")
    chat.model.models = {"data": [{"id": "m"}, {"id": "embed-small"}, {"id": "embed-gone"}]}
    client = chat.tenant.client("admin")
    page = f"/w/{chat.tenant.workspace.slug}/providers/{provider.pk}/"
    offered = client.post(page)
    assert offered.context["embedding_models"] == ["embed-gone", "embed-small"]
    refused = client.post(page, {"embedding_model": "embed-gone"})
    assert "does not offer the embedding model" in refused.content.decode()
    provider.refresh_from_db()
    assert provider.embedding_model == ""
    assert client.post(page, {"embedding_model": "embed-small"}).status_code == 302
    provider.refresh_from_db()
    assert provider.embedding_model == "embed-small"
    tested = client.post(page)
    assert "The embedding model embed-small answered in" in tested.content.decode()
    assert tested.context["embedding_models"] == []
    body = client.post(f"/api/providers/{provider.pk}/check/", {}, "application/json").json()
    assert body["embedding"]["numbers"] == 256
    assert [one["embeds"] for one in body["models"]] == [True, True, False]


def test_a_bud_without_embeddings_asks_the_database_nothing_more(chat: Chat) -> None:
    """REL-622: neither in a search nor in its list of files."""
    file = learn(chat, "rules.md", RULES)
    rows = Bud.objects.for_workspace(chat.tenant.workspace).select_related("provider")
    bud = rows.get(pk=chat.bud.pk)
    with CaptureQueriesContext(connection) as asked:
        assert meaning._prepared_of(bud) == (None, [])
        assert meaning.readiness_of(bud, [file]) == {}
    assert len(asked) == 0
    assert [row.file_id for row in search_passages(bud, "vacation")] == [file.pk]
