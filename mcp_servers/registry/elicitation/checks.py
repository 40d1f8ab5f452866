"""What a server may ask a person, what the person should know first, and whether an answer fits. Pure.

Source: MCP specification 2025-11-25, "Elicitation": restricted schemas, URL mode, security considerations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from mcp_servers.client.canonical import JsonValue, canonical_json
from mcp_servers.client.errors import InvalidJson
from mcp_servers.client.hidden_text import find_hidden, mixes_scripts, strip_hidden
from mcp_servers.client.inputs import AskedInput, InputKind
from mcp_servers.client.schema_work import UnusableSchema
from mcp_servers.client.schemas import check_schema, fits
from workspaces.errors import InvalidInput
from workspaces.redaction import is_secret_key

MAX_FIELDS: Final = 50
MAX_CHOICES: Final = 500
MAX_MESSAGE_LENGTH: Final = 8_000
MAX_URL_LENGTH: Final = 4_000
MAX_ANSWER_BYTES: Final = 64 * 1024

_PRIMITIVES: Final = frozenset({"string", "number", "integer", "boolean"})
_SECRET_WORDS: Final = (
    "password",
    "passphrase",
    "secret",
    "token",
    "api key",
    "apikey",
    "credit card",
    "cvv",
    "pin code",
)


class InvalidInputRequest(ValueError):
    """A request that is put to nobody, with the reason in plain words."""


def check_asked(asked: AskedInput) -> None:
    """Make sure that a form or a link may be put to a person.

    Raises:
        InvalidInputRequest: it may not.
    """
    if len(asked.message) > MAX_MESSAGE_LENGTH:
        raise InvalidInputRequest(gettext_noop("its question is too long."))
    if asked.kind is InputKind.FORM:
        _check_form(asked.schema)
    elif asked.kind is InputKind.URL:
        _check_url(asked.url)


def warnings_of(asked: AskedInput) -> list[str]:
    """What a person should know before answering, in plain words."""
    warnings = []
    hidden = find_hidden(asked.message)
    if hidden:
        warnings.append(_("The question contains %(hidden)s.") % {"hidden": ", ".join(hidden)})
    if asked.kind is InputKind.FORM:
        warnings.extend(
            _("“%(name)s” looks like a secret. A server should not ask for one in a form.")
            % {"name": name}
            for name in secret_fields(asked.schema)
        )
    if asked.kind is InputKind.URL:
        warnings.extend(_doubts_about(urlsplit(asked.url).hostname or ""))
    return warnings


def secret_fields(schema: Mapping[str, JsonValue]) -> list[str]:
    """The fields of a form whose answers look like secrets."""
    return [
        name
        for name, field in _fields_of(schema).items()
        if is_secret_key(name)
        or field.get("format") == "password"
        or any(word in f"{name} {field.get('title', '')}".lower() for word in _SECRET_WORDS)
    ]


def host_of(url: str) -> str:
    """The host of a link, as browsers show it."""
    return urlsplit(url).hostname or ""


def check_content(schema: Mapping[str, JsonValue], content: Mapping[str, JsonValue]) -> None:
    """Make sure that an answer fits the form.

    Raises:
        InvalidInput: names the fields that do not.
    """
    fields = _fields_of(schema)
    faults: dict[str, list[str]] = {
        name: [_("The server did not ask for this.")] for name in content if name not in fields
    }
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in content:
            faults[str(name)] = [_("Please fill this in.")]
    for name, value in content.items():
        if name in fields and not fits(fields[name], value):
            faults[name] = [_expectation(fields[name])]
    try:
        size = len(canonical_json(content))
    except InvalidJson as error:
        raise InvalidInput(fields={"content": [f"{error.message}."]}) from error
    if size > MAX_ANSWER_BYTES:
        raise InvalidInput(
            fields={"content": [_("At most %(most)s KB.") % {"most": MAX_ANSWER_BYTES // 1024}]}
        )
    if faults:
        raise InvalidInput(fields={f"content.{name}": texts for name, texts in faults.items()})
    if not fits(schema, content):
        raise InvalidInput(fields={"content": [_("The answer does not fit the form.")]})


def fingerprint_of(asked: AskedInput) -> str:
    """The same for the same question."""
    parts = [asked.kind.value, asked.message, dict(asked.schema), asked.url, dict(asked.params)]
    return hashlib.sha256(canonical_json(parts)).hexdigest()


def _check_form(schema: Mapping[str, JsonValue]) -> None:
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise InvalidInputRequest(gettext_noop("its form is not a list of fields."))
    try:
        check_schema(dict(schema), what="form's")
    except UnusableSchema as error:
        raise InvalidInputRequest(str(error)) from error
    fields = _fields_of(schema)
    if len(fields) > MAX_FIELDS:
        raise InvalidInputRequest(
            gettext_noop("its form has more than %(most)s fields.") % {"most": MAX_FIELDS}
        )
    for name, field in fields.items():
        if not _is_simple(field):
            raise InvalidInputRequest(
                gettext_noop("its form's field “%(name)s” is not a simple one.")
                % {"name": strip_hidden(name)[:80]}
            )


def _is_simple(field: Mapping[str, JsonValue]) -> bool:
    """A text, a number, a yes or no, one choice, or several choices; nothing nested."""
    kind = field.get("type")
    if kind == "array":
        items = field.get("items")
        return isinstance(items, dict) and _choices(items) is not None
    if kind not in _PRIMITIVES or "properties" in field or "items" in field:
        return False
    if any(key in field for key in ("enum", "oneOf", "anyOf")):
        return _choices(field) is not None
    return True


def _choices(field: Mapping[str, JsonValue]) -> list[JsonValue] | None:
    """The values of a field with choices; None if it has none, or in a form that is not theirs."""
    for key in ("enum", "oneOf", "anyOf"):
        options = field.get(key)
        if options is None:
            continue
        if not isinstance(options, list) or not 0 < len(options) <= MAX_CHOICES:
            return None
        values = [option.get("const") if isinstance(option, dict) else option for option in options]
        return values if all(isinstance(value, str) for value in values) else None
    return None


def _check_url(url: str) -> None:
    if (
        not url
        or len(url) > MAX_URL_LENGTH
        or url != strip_hidden(url)
        or any(c.isspace() for c in url)
    ):
        raise InvalidInputRequest(gettext_noop("its link is not a sound one."))
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInputRequest(gettext_noop("its link is not a sound one.")) from error
    if parts.scheme != "https":
        raise InvalidInputRequest(gettext_noop("its link is not an https one."))
    if not host or parts.username is not None or parts.password is not None:
        raise InvalidInputRequest(gettext_noop("its link is not a sound one."))


def _doubts_about(host: str) -> list[str]:
    doubts = []
    if "xn--" in host or not host.isascii():
        doubts.append(
            _("The host %(host)s is written with other than plain Latin letters.") % {"host": host}
        )
    if mixes_scripts(host):
        doubts.append(
            _("The host %(host)s mixes letters of several alphabets, as forgeries do.")
            % {"host": host}
        )
    if host.replace(".", "").isdigit() or ":" in host:
        doubts.append(_("The link leads to a bare address instead of a name."))
    return doubts


def _fields_of(schema: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: cast("dict[str, JsonValue]", field)
        for name, field in properties.items()
        if isinstance(field, dict)
    }


def _expectation(field: Mapping[str, JsonValue]) -> str:
    if _choices(field) is not None:
        return _("Please pick one of the choices.")
    words = {
        "string": {
            "email": _("Please enter an e-mail address."),
            "uri": _("Please enter a whole web address."),
            "date": _("Please enter a date as 2026-01-31."),
            "date-time": _("Please enter a moment as 2026-01-31T12:00:00Z."),
        }.get(str(field.get("format")), _("This text does not fit.")),
        "integer": _("Please enter a whole number in the allowed range."),
        "number": _("Please enter a number in the allowed range."),
        "boolean": _("Please answer yes or no."),
        "array": _("Please pick from the choices."),
    }
    return words.get(str(field.get("type")), _("This does not fit."))
