"""What a server says about itself, without the secrets of its workspace. Pure.

Names that are used to call, read or ask again stay as they are; a thing whose name holds a secret is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from workspaces.redaction import redact_known
from workspaces.secret_memory import is_plain

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.inputs import AskedInput

_NAMES: Final = ("name", "uri", "uriTemplate")
_SCHEMAS: Final = ("inputSchema", "outputSchema")
_STRUCTURE: Final = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "format", "type"}
)
"""Keywords of a schema whose values are words of the standard, which a secret may be too."""
_FIELD_NAMES: Final = frozenset({"dependentRequired", "required"})
"""Keywords that list keys of an object, which masking leaves as they are."""


def names_a_secret(name: str, workspace_id: UUID) -> bool:
    """Whether a name holds a secret. Ordinary words are none, even if somebody declared them one."""
    return not is_plain(name) and redact_known(name, workspace_id=workspace_id) != name


def clean_offers(items: Iterable[Any], workspace_id: UUID) -> tuple[list[dict[str, Any]], int]:
    """Tools, resources or prompts without secrets, and how many were left out because of their names."""
    kept, left_out = [], 0
    for item in items:
        if not isinstance(item, Mapping):  # which discovery tells of
            kept.append(redact_known(item, workspace_id=workspace_id))
            continue
        names = [name for key in _NAMES if isinstance(name := item.get(key), str)]
        if any(names_a_secret(name, workspace_id) for name in names):
            left_out += 1
        else:
            kept.append(_clean_offer(item, workspace_id))
    return kept, left_out


def _clean_offer(item: Mapping[str, Any], workspace_id: UUID) -> dict[str, Any]:
    cleaned = _with_its_keys(item, workspace_id)
    cleaned.update({key: item[key] for key in _NAMES if key in item})
    cleaned.update({key: clean_schema(item[key], workspace_id) for key in _SCHEMAS if key in item})
    given, shown = item.get("arguments"), cleaned.get("arguments")
    if isinstance(given, list) and isinstance(shown, list):
        for raw, argument in zip(given, shown, strict=True):
            if isinstance(raw, Mapping) and "name" in raw:
                argument["name"] = raw["name"]
    return cleaned


def clean_schema(schema: Any, workspace_id: UUID) -> Any:
    """A JSON Schema without secrets, which still means the same."""
    if isinstance(schema, Mapping):
        return {key: _clean_keyword(key, value, workspace_id) for key, value in schema.items()}
    if isinstance(schema, list):
        return [clean_schema(one, workspace_id) for one in schema]
    return redact_known(schema, workspace_id=workspace_id)


def _clean_keyword(key: str, value: Any, workspace_id: UUID) -> Any:
    if key in _FIELD_NAMES and not isinstance(value, str):
        return value
    words = value if isinstance(value, list) else [value]
    if key in _STRUCTURE and all(isinstance(one, str) and is_plain(one) for one in words):
        return value
    return clean_schema(value, workspace_id)


def clean_question(asked: AskedInput, workspace_id: UUID) -> AskedInput:
    """A question without secrets; its link stays as it is, see names_a_secret()."""
    return replace(
        asked,
        message=redact_known(asked.message, workspace_id=workspace_id),
        schema=clean_schema(asked.schema, workspace_id),
        params=_with_its_keys(asked.params, workspace_id),
    )


def _with_its_keys(value: Mapping[str, Any], workspace_id: UUID) -> dict[str, Any]:
    """What the protocol describes: its own words are keys, such as `inputSchema` or `maxTokens`, and stay."""
    return {key: redact_known(part, workspace_id=workspace_id) for key, part in value.items()}
