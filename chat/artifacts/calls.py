"""What the built-in tools do. Synchronous, in a thread with the database; the gate runs it and keeps the record."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.db.models import Q
from django.utils.translation import gettext_noop as _

from audit.actions import Outcome
from chat.artifacts import storage
from chat.artifacts.knowledge import (
    MOST_MERGED,
    PREFIX,
    find_knowledge,
    knowledge_of,
    listed,
    merge_passages,
    passages_in_words,
    read_lines,
    search_passages,
)
from chat.artifacts.meaning import KnowledgeQuery
from chat.artifacts.readings import find_reading, is_converted, text_of
from chat.artifacts.rows import artifacts_of, newest_of, version_of
from chat.artifacts.services import SavedFile, add_version, create_artifact
from chat.artifacts.sizes import size_in_words
from chat.documents.extracting import NotReadNow
from chat.files.kinds import as_text, is_text, kind_of
from chat.files.names import clean_name
from chat.models import (
    Artifact,
    ArtifactVersion,
    Bud,
    Conversation,
    KnowledgeFile,
    ToolCall,
)
from chat.values import ArtifactOrigin, BuiltinTool
from mcp_servers.client.values import TextPart, ToolCallOutcome
from workspaces.actors import Actor
from workspaces.errors import Conflict, InvalidInput, NotFound

MOST_READ_CHARACTERS: Final = 60_000
"""Of one reading by a model; it can ask for the lines that follow."""
MOST_HITS: Final = 40
AROUND_HIT: Final = 1
"""Lines before and after each place that a search found."""
LONGEST_LINE: Final = 500
# What came from a server or a person's disk may hold anybody's words, and so may what the model wrote after it read some.
# A copy in a fork does not say which call wrote it.
_MAY_BE_FROM_OUTSIDE: Final = (
    Q(origin__in=[ArtifactOrigin.TOOL.value, ArtifactOrigin.UPLOAD.value])
    | Q(tool_call__turn__has_read_untrusted=True)
    | Q(
        origin=ArtifactOrigin.MODEL.value,
        tool_call__isnull=True,
        artifact__conversation__turns__has_read_untrusted=True,
    )
)


def run_builtin(
    call: ToolCall,
    conversation: Conversation,
    bud: Bud,
    actor: Actor,
    sought: KnowledgeQuery | None = None,
) -> ToolCallOutcome:
    """Do what the call of a bud asks for.

    Args:
        sought: for a search in its knowledge, once its meaning has been asked for.

    Raises:
        DomainError: it does not work, in words for the model.
    """
    if call.builtin == BuiltinTool.SEARCH_KNOWLEDGE:
        return _search_knowledge(call, bud, sought)
    return _RUN[call.builtin](call, conversation, bud, actor)


def find_artifact(conversation: Conversation, name: object) -> Artifact:
    """The file of that name.

    Raises:
        NotFound: there is none; the message names those that there are.
    """
    rows = Artifact.objects.for_workspace(conversation.workspace_id).filter(
        conversation_id=conversation.pk, is_deleted=False
    )
    found = rows.filter(name=name).first() or rows.filter(name=clean_name(str(name))).first()
    if found is None:
        names = ", ".join(rows.order_by("pk").values_list("name", flat=True)[:50])
        raise NotFound(
            _("There is no file named %(name)s here. There are: %(names)s.")
            % {"name": f"{str(name)[:200]!r}", "names": names or "none"}
        )
    return found


def version_asked_for(call: ToolCall, conversation: Conversation) -> ArtifactVersion:
    """The version that a reading asks for.

    Raises:
        NotFound: there is none.
    """
    artifact = find_artifact(conversation, call.arguments.get("name"))
    return version_of(artifact, call.arguments.get("version") or artifact.newest)


def reference(artifact: Artifact, version: ArtifactVersion) -> dict[str, Any]:
    """A version as calls and the log name it."""
    return {
        "id": str(artifact.pk),
        "name": artifact.name,
        "version": version.number,
        "kind": kind_of(version.content_type, artifact.name).value,
        "content_type": version.content_type,
        "size": version.size,
        "sha256": version.sha256,
    }


def saved_outcome(saved: SavedFile, *, verb: str) -> ToolCallOutcome:
    """The result of a call that made a version."""
    version = saved.version
    text = (
        f"{verb} {saved.artifact.name}, version {version.number} "
        f"({version.content_type}, {size_in_words(version.size)}). The user can see it."
    )
    return ToolCallOutcome(
        outcome=Outcome.OK,
        content=(TextPart(text=text),),
        details={"artifact": reference(saved.artifact, version)},
    )


def _create(call: ToolCall, conversation: Conversation, bud: Bud, actor: Actor) -> ToolCallOutcome:
    try:
        saved = create_artifact(
            conversation=conversation,
            name=call.arguments["name"],
            content=call.arguments["content"].encode(),
            actor=actor,
            origin=ArtifactOrigin.MODEL,
            call=call,
        )
    except Conflict as error:
        raise Conflict(
            _("%(message)s Change it with update_artifact.") % {"message": error.message}
        ) from error
    return saved_outcome(saved, verb="Created")


def _update(call: ToolCall, conversation: Conversation, bud: Bud, actor: Actor) -> ToolCallOutcome:
    content, passage = call.arguments.get("content"), call.arguments.get("replace")
    if (content is None) == (passage is None):
        raise InvalidInput(_("Give either the whole content, or a passage to replace."))
    artifact = find_artifact(conversation, call.arguments["name"])
    base = None
    if passage is not None:
        newest = newest_of(artifact)
        base = newest.number
        made = ArtifactVersion.objects.for_workspace(call.workspace_id).filter(tool_call=call)
        if not made.exists():
            content = _replaced(_source_of(artifact, newest), passage)
    saved = add_version(
        artifact=artifact,
        content=(content or "").encode(),
        actor=actor,
        origin=ArtifactOrigin.MODEL,
        base=base,
        call=call,
    )
    return saved_outcome(saved, verb="Saved")


def _replaced(text: str, passage: Mapping[str, str]) -> str:
    found = text.count(passage["old"])
    if found != 1:
        times = "not at all" if found == 0 else f"{found} times"
        raise InvalidInput(
            _("The passage to replace occurs %(times)s; it has to occur exactly once.")
            % {"times": times}
        )
    return text.replace(passage["old"], passage["new"])


def _read(call: ToolCall, conversation: Conversation, bud: Bud, actor: Actor) -> ToolCallOutcome:
    known = _knowledge_asked_for(call, conversation, bud)
    if known is not None:
        return _read_knowledge(call, bud, known)
    version = version_asked_for(call, conversation)
    artifact = version.artifact
    is_source = not is_converted(version) or (
        call.arguments.get("source") is True and is_text(version.content_type)
    )
    text = _source_of(artifact, version) if is_source else _text_of(version)
    lines = _lines_of(text)
    head = f"{artifact.name}, version {version.number} of {artifact.newest}"
    wanted = call.arguments.get("search")
    if wanted is not None:
        text = f"{head}, {len(lines)} lines. {_found(lines, wanted)}"
    else:
        first = call.arguments.get("first_line") or 1
        last = min(call.arguments.get("last_line") or len(lines), len(lines))
        text = "".join(lines[first - 1 : last])
        note = ""
        if len(text) > MOST_READ_CHARACTERS:
            text = text[:MOST_READ_CHARACTERS]
            last = first + text.count("\n")
            note = "\n[cut here]"
        text = f"{head}, lines {first} to {last} of {len(lines)}:\n{text}{note}"
    outside = ArtifactVersion.objects.for_workspace(call.workspace_id).filter(
        _MAY_BE_FROM_OUTSIDE, artifact=artifact, number__lte=version.number
    )
    return ToolCallOutcome(
        outcome=Outcome.OK,
        content=(TextPart(text=text),),
        details={
            "artifact": reference(artifact, version),
            **({"from_outside": True} if outside.exists() else {}),
        },
    )


def _knowledge_asked_for(
    call: ToolCall, conversation: Conversation, bud: Bud
) -> KnowledgeFile | None:
    """The file of the bud that a call names; None: it names one of the conversation, which comes first.

    Raises:
        NotFound: it names one of the bud's, and there is none of that name.
    """
    name = str(call.arguments.get("name"))
    if not bud.has_knowledge:
        return None
    if not name.startswith(PREFIX):
        rows = Artifact.objects.for_workspace(conversation.workspace_id)
        mine = rows.filter(conversation_id=conversation.pk, is_deleted=False)
        if mine.filter(name__in=[name, clean_name(name)]).exists():
            return None
        if not any(file.name.casefold() == name.casefold() for file in knowledge_of(bud)):
            others = " ".join(listed(bud))[:2_000]
            names = ", ".join(mine.order_by("pk").values_list("name", flat=True)[:50])
            raise NotFound(
                _(
                    "There is no file named %(name)s. This conversation has: %(names)s. You know: %(others)s"
                )
                % {"name": f"{name[:200]!r}", "names": names or "none", "others": others}
            )
    return find_knowledge(bud, name)


def _read_knowledge(call: ToolCall, bud: Bud, file: KnowledgeFile) -> ToolCallOutcome:
    wanted = call.arguments.get("search")
    if wanted is not None:
        text = passages_in_words(search_passages(bud, wanted, file=file), wanted)
    else:
        first, last = call.arguments.get("first_line"), call.arguments.get("last_line")
        text = read_lines(file, first, last)
    return _from_knowledge(text, [file])


def _search_knowledge(call: ToolCall, bud: Bud, sought: KnowledgeQuery | None) -> ToolCallOutcome:
    wanted, name = call.arguments["query"], call.arguments.get("name")
    file = find_knowledge(bud, name) if name else None
    if sought is not None and sought.has_meaning:
        by_words = search_passages(bud, wanted, file=file, most=MOST_MERGED)
        found = merge_passages([by_words, sought.nearest(MOST_MERGED, file)])
    else:
        found = search_passages(bud, wanted, file=file)
    note = sought.note if sought is not None else ""
    return _from_knowledge(passages_in_words(found, wanted, note), {row.file for row in found})


def _from_knowledge(text: str, files: Iterable[KnowledgeFile]) -> ToolCallOutcome:
    """What was read, with the files that it is of for the log."""
    sources = [{"id": str(one.pk), "name": one.name, "sha256": one.sha256} for one in files]
    return ToolCallOutcome(
        outcome=Outcome.OK,
        content=(TextPart(text=text),),
        details={"knowledge": sources, "from_outside": True},
    )


def _lines_of(text: str) -> list[str]:
    """Lines as the outline and other tools count them. A page break in a line or a sign of Unicode's ends none.

    Only where there is no other end, a carriage return is one.
    """
    if "\n" not in text:
        return text.splitlines(keepends=True)
    return list(io.StringIO(text, newline="\n"))


def _found(lines: Sequence[str], wanted: str) -> str:
    """The lines around each place where the phrase occurs, or else all its words do."""
    phrase, words = wanted.casefold(), wanted.casefold().split()
    folded = [line.casefold() for line in lines]
    hits = [at for at, line in enumerate(folded) if phrase in line] or [
        at for at, line in enumerate(folded) if all(word in line for word in words)
    ]
    if not hits:
        return f"Nothing was found for {wanted!r}."
    shown: dict[int, None] = {}
    for hit in hits[:MOST_HITS]:
        near = range(max(0, hit - AROUND_HIT), min(len(lines), hit + AROUND_HIT + 1))
        shown.update(dict.fromkeys(near))
    shown_lines = [f"{at + 1}: {lines[at].rstrip()[:LONGEST_LINE]}" for at in sorted(shown)]
    more = f" The first {MOST_HITS} are shown." if len(hits) > MOST_HITS else ""
    places = "1 line matches" if len(hits) == 1 else f"{len(hits)} lines match"
    return f"{places} {wanted!r}.{more}\n" + "\n".join(shown_lines)[:MOST_READ_CHARACTERS]


def _list(call: ToolCall, conversation: Conversation, bud: Bud, actor: Actor) -> ToolCallOutcome:
    lines = [
        f"- {artifact.name}: version {version.number}, {version.content_type}, {size_in_words(version.size)}"
        for artifact, version in artifacts_of(conversation)
    ]
    text = "\n".join(lines) or "This conversation has no files."
    if known := listed(bud):
        text += "\n\nYour knowledge files:\n" + "\n".join(known)
    return ToolCallOutcome(outcome=Outcome.OK, content=(TextPart(text=text),))


def _text_of(version: ArtifactVersion) -> str:
    """What `read_version` has made of a document or a page before.

    Raises:
        Unreadable: it has no text.
        NotReadNow: reading it has not worked this time.
    """
    reading = find_reading(version)
    if reading is None:
        raise NotReadNow
    return text_of(reading)


def _source_of(artifact: Artifact, version: ArtifactVersion) -> str:
    """The text of a file as it is.

    Raises:
        InvalidInput: it is none.
    """
    text = as_text(storage.read(version.path)) if is_text(version.content_type) else None
    if text is None:
        raise InvalidInput(
            _("%(name)s is no text: %(content_type)s, %(size)s.")
            % {
                "name": artifact.name,
                "content_type": version.content_type,
                "size": size_in_words(version.size),
            }
        )
    return text


READERS: Final = frozenset({BuiltinTool.READ_ARTIFACT.value})
"""Tools that need a document's text made before they run."""
_RUN: Final[Mapping[str, Callable[[ToolCall, Conversation, Bud, Actor], ToolCallOutcome]]] = {
    BuiltinTool.CREATE_ARTIFACT.value: _create,
    BuiltinTool.READ_ARTIFACT.value: _read,
    BuiltinTool.UPDATE_ARTIFACT.value: _update,
    BuiltinTool.LIST_ARTIFACTS.value: _list,
}
