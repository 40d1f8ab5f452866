"""Content on its way between a file and a tool of a server. The model words the call, and never sees the content.

A sending is a call of the server's own tool: it gets the content in an argument, and policy, approval, schema and log
see the call as it is sent. Which version goes is written into the call's row first, so what a person approves is what
is sent, from whatever process.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from chat.artifacts import storage
from chat.artifacts.calls import find_artifact, reference
from chat.artifacts.rows import version_of
from chat.artifacts.services import SavedFile, WhenTaken, create_artifact
from chat.artifacts.sizes import size_in_words
from chat.files.kinds import as_text, is_text
from chat.models import Artifact, Conversation, ToolCall
from chat.tools.builtin.files import is_sending
from chat.values import ArtifactOrigin
from mcp_servers.client.canonical import MAX_ARGUMENTS_BYTES, canonical_json
from mcp_servers.client.values import (
    AudioPart,
    ContentPart,
    EmbeddedResourcePart,
    ImagePart,
    JsonValue,
    ResourceLinkPart,
    TextPart,
)
from workspaces.actors import Actor
from workspaces.errors import DomainError, InvalidInput


def pin(call: ToolCall, conversation: Conversation) -> dict[str, Any]:
    """Which version a sending sends: the one that was asked for, or the newest of this moment.

    Raises:
        NotFound, InvalidInput: there is none, or it cannot be sent.
    """
    artifact = find_artifact(conversation, call.arguments.get("artifact"))
    version = version_of(artifact, call.arguments.get("version") or artifact.newest)
    if version.size > MAX_ARGUMENTS_BYTES:
        raise InvalidInput(
            _("%(name)s has %(size)s; a tool call carries at most %(most)s.")
            % {
                "name": artifact.name,
                "size": size_in_words(version.size),
                "most": size_in_words(MAX_ARGUMENTS_BYTES),
            }
        )
    if call.arguments.get("argument") in (call.arguments.get("arguments") or {}):
        raise InvalidInput(
            _("The argument for the content is also in the other arguments. Leave it out there.")
        )
    return {**reference(artifact, version), "argument": call.arguments.get("argument")}


def arguments_for_gate(call: ToolCall) -> dict[str, Any]:
    """What the server's tool is given: the model's arguments, with the pinned content put in.

    Raises:
        NotFound, ContentMissing: the pinned version is gone, or cannot be read.
    """
    if not call.builtin:
        return dict(call.arguments)
    effective = dict(call.arguments.get("arguments") or {})
    if is_sending(call):
        effective[str(call.arguments["argument"])] = _content(call)
    return effective


def arguments_for_log(call: ToolCall) -> dict[str, Any]:
    """The same for a call that will not be made; as the model worded it if the content is gone."""
    try:
        return arguments_for_gate(call)
    except DomainError:
        return dict(call.arguments)


def keep_received(
    call: ToolCall,
    conversation: Conversation,
    actor: Actor,
    *,
    content: Sequence[ContentPart],
    structured: JsonValue | None = None,
) -> SavedFile:
    """Save what a server gave as a file, or as the next version of the one with that name.

    Raises:
        InvalidInput: there is nothing in it that a file could hold.
        Others as create_artifact().
    """
    return create_artifact(
        conversation=conversation,
        name=str(call.arguments["name"]),
        content=_received(content, structured),
        actor=actor,
        origin=ArtifactOrigin.TOOL,
        call=call,
        when_taken=WhenTaken.ADD_VERSION,
    )


def _content(call: ToolCall) -> str:
    pinned = call.artifact or {}
    artifact = Artifact.objects.for_workspace(call.workspace_id).fetch(pinned.get("id"))
    version = version_of(artifact, pinned["version"])
    content = storage.read(version.path)
    encoding = call.arguments.get("encoding") or "auto"
    text = as_text(content) if is_text(version.content_type) else None
    if encoding == "text" and text is None:
        raise InvalidInput(
            _("%(name)s is no text; it can be sent in base64.") % {"name": artifact.name}
        )
    if text is not None and encoding in ("auto", "text"):
        return text
    data = base64.b64encode(content).decode()
    return f"data:{version.content_type};base64,{data}" if encoding == "data_url" else data


def _received(parts: Sequence[ContentPart], structured: JsonValue | None) -> bytes:
    binaries = [data for part in parts if (data := _binary(part)) is not None]
    texts = [text for part in parts if (text := _text(part)) is not None]
    if len(binaries) == 1:
        return binaries[0]
    if len(binaries) > 1:
        raise InvalidInput(_("The result holds several files; only one can be saved."))
    if any(isinstance(part, EmbeddedResourcePart) and part.text is None for part in parts):
        raise InvalidInput(_("The result holds a binary file that is too large to be kept."))
    if texts:
        return "\n".join(texts).encode()
    if structured is not None:
        return canonical_json(structured)
    links = [part.uri for part in parts if isinstance(part, ResourceLinkPart)]
    if links:
        raise InvalidInput(
            _(
                "The result only names a resource: %(links)s. Retrieve that with `resource` instead of `tool`."
            )
            % {"links": links[0][:500]}
        )
    raise InvalidInput(_("The result is empty."))


def _binary(part: ContentPart) -> bytes | None:
    data = None
    if isinstance(part, ImagePart | AudioPart | EmbeddedResourcePart):
        data = part.data
    if data is None:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(_("The file in the result is damaged.")) from error


def _text(part: ContentPart) -> str | None:
    if isinstance(part, TextPart | EmbeddedResourcePart):
        return part.text
    return None
