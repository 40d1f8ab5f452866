"""The `mcpServers` format that desktop clients share: read strictly, variables filled in. Pure.

    {"mcpServers": {
        "weather": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "files":   {"command": "/usr/bin/files-mcp", "args": ["${FOLDER:-/srv}"], "env": {"KEY": "${KEY}"},
                    "trellis": {"required": true}}
    }}

Keys of other programs are left alone; ours stand under `trellis`. Comments and trailing commas may stand anywhere. What
VS Code (`servers`), Zed (`context_servers`), OpenCode (`mcp`) and Codex (TOML) keep in their settings is read as well.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.registry.files import codex_config
from mcp_servers.registry.files.commented_json import plain_json
from workspaces.errors import InvalidInput

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 500
MAX_NAME_LENGTH: Final = 60

_MAX_TEXTS: Final = 200
MAX_TEXT_LENGTH: Final = 8192
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
_OF_A_COMPUTER: Final = r"(?:input|command|config|file):[^{}]{1,128}"
"""What only an editor on a person's computer can fill in."""
_VARIABLE: Final = re.compile(
    rf"\$\{{(?:env:)?(?P<name>{_NAME}|{_OF_A_COMPUTER})(?::-(?P<default>[^}}]*))?\}}"
)
_BARE_VARIABLE: Final = re.compile(r"(?:^|\s)\$[A-Z_][A-Z0-9_]{0,127}$")
"""As a shell writes it, at the end of a value. Nothing fills it in."""
_VARIABLE_OF_OPENCODE: Final = re.compile(r"\{(?:env|file):[^{}]{1,128}\}")
_FENCED: Final = re.compile(r"\s*```\w*\r?\n(.*?)```\s*", re.DOTALL)
_SECTIONS: Final = ("mcpServers", "servers", "context_servers")
_URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
_OWN_KEYS: Final = frozenset({"required", "title", "protocol", "auth", "accounts", "scope"})
_KEPT_BACK: Final = re.compile(r"SECRET_KEY|TRELLIS_.*|DATABASE_URL|REDIS_URL")
"""The platform's own secrets go to no server, whatever the file says."""


class MissingVariable(Exception):
    """A variable has neither a value nor a default."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        super().__init__(f"The variable {', '.join(self.names)} is not set.")


class MalformedServerList(InvalidInput):
    """The text is not in the format; says where."""

    code = "malformed_server_list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of a list, with its variables not yet filled in."""

    name: str
    transport: str
    """One of `transports`, or the automatic choice."""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_disabled: bool = False
    is_required: bool = False
    title: str = ""
    protocol: Protocol = Protocol.AUTO
    uses_sign_in: bool = False
    """People sign in to it; only a workspace's own server can have that."""
    has_shared_account: bool = False
    scope: str = ""

    @property
    def is_stdio(self) -> bool:
        """It is a program."""
        return self.transport == transports.STDIO

    def raw(self) -> dict[str, Any]:
        """All of it, for comparing with another version; may hold secrets."""
        return {
            "transport": self.transport,
            "url": self.url,
            "headers": dict(self.headers),
            "command": self.command,
            "args": list(self.args),
            "env": dict(self.env),
            "protocol": self.protocol.value,
        }

    def variables(self) -> tuple[str, ...]:
        """The names of all variables in it, each once."""
        names = (match["name"] for text in self._texts() for match in _VARIABLE.finditer(text))
        return tuple(dict.fromkeys(names))

    def _texts(self) -> tuple[str, ...]:
        return (self.url, self.command, *self.args, *self.headers.values(), *self.env.values())

    def longest_with(self, values: Mapping[str, str]) -> int:
        """How many characters its longest text gets with these values. It is not made: a value may stand in it often."""

        def added(match: re.Match[str]) -> int:
            return len(values.get(match["name"]) or match["default"] or "") - len(match[0])

        return max(len(text) + sum(map(added, _VARIABLE.finditer(text))) for text in self._texts())

    def expanded(self, environment: Mapping[str, str]) -> Entry:
        """The same with its variables filled in from the platform's environment.

        Raises:
            MissingVariable: names all that have neither a value nor a default.
        """
        return self.filled(_offered(environment))

    def filled(self, values: Mapping[str, str]) -> Entry:
        """The same with values that somebody gave instead of its variables.

        Raises:
            MissingVariable: as expanded().
        """
        missing: list[str] = []

        def fill(text: str) -> str:
            return _fill(text, values, missing)

        filled = Entry(
            name=self.name,
            transport=self.transport,
            url=fill(self.url),
            headers={name: fill(value) for name, value in self.headers.items()},
            command=fill(self.command),
            args=tuple(fill(arg) for arg in self.args),
            env={name: fill(value) for name, value in self.env.items()},
            is_disabled=self.is_disabled,
            is_required=self.is_required,
            title=self.title,
            protocol=self.protocol,
            uses_sign_in=self.uses_sign_in,
            has_shared_account=self.has_shared_account,
            scope=self.scope,
        )
        if missing:
            raise MissingVariable(missing)
        return filled


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerList:
    """What a text in the format says."""

    entries: tuple[Entry, ...]
    problems: Mapping[str, str] = field(default_factory=dict)
    """Names of entries that cannot be read, and why; the others are not affected."""


def read_server_list(text: str | bytes) -> ServerList:
    """Read a list of servers. An entry that is wrong is told and left out; a text that is not the format is refused.

    Raises:
        MalformedServerList: not UTF-8, not JSON or TOML (with line and column), too large, a name twice, or no `mcpServers` in it.
    """
    document = _document(text)
    servers = _servers_in(document)
    if not isinstance(servers, dict):
        raise MalformedServerList(
            _("The file needs an object “mcpServers” with the servers by name.")
        )
    if len(servers) > MAX_ENTRIES:
        raise MalformedServerList(
            _("At most %(most)s servers fit into one list.") % {"most": MAX_ENTRIES}
        )
    entries: list[Entry] = []
    problems: dict[str, str] = {}
    for name, raw in servers.items():
        try:
            entries.append(_entry(name, raw))
        except ValueError as error:
            problems[_printable(name)] = str(error)
    return ServerList(entries=tuple(entries), problems=problems)


def _servers_in(document: dict[str, Any]) -> object:
    """The servers by name: under the usual keys, one level further in as in some editors' settings, or by themselves."""
    inner = document.get("mcp")
    for place in (document, inner if isinstance(inner, dict) else {}):
        for key in _SECTIONS:
            if key in place:
                return place[key]
    is_bare = document and all(
        isinstance(one, dict) and any(key in one for key in ("command", *_URL_KEYS))
        for one in document.values()
    )
    return document if is_bare else inner


def _document(text: str | bytes) -> dict[str, Any]:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_FILE_BYTES:
        raise MalformedServerList(
            _("A list of servers has at most %(most)s KB.") % {"most": MAX_FILE_BYTES // 1024}
        )
    try:
        document = _parsed(_unfenced(raw.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise MalformedServerList(_("The text is not UTF-8.")) from error
    except json.JSONDecodeError as error:
        raise MalformedServerList(
            _("Not valid JSON at line %(lineno)s, column %(colno)s: %(msg)s.")
            % {"lineno": error.lineno, "colno": error.colno, "msg": error.msg}
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise MalformedServerList(
            _("Not valid TOML: %(fault)s.") % {"fault": str(error)[:200]}
        ) from error
    except RecursionError as error:
        raise MalformedServerList(_("The text is nested too deeply.")) from error
    except ValueError as error:
        raise MalformedServerList(_("It holds a number that is too long.")) from error
    if not isinstance(document, dict):
        raise MalformedServerList(
            _("The file needs an object “mcpServers” with the servers by name.")
        )
    return document


def _parsed(text: str) -> object:
    if not codex_config.is_codex_config(text):
        return json.loads(_whole(plain_json(text)), object_pairs_hook=_without_duplicates)
    if len(text) > codex_config.MAX_BYTES:
        raise MalformedServerList(
            _("A list of servers in TOML has at most %(most)s KB.")
            % {"most": codex_config.MAX_BYTES // 1024}
        )
    return codex_config.read_codex_config(text)


def _unfenced(text: str) -> str:
    """The text without the fence of Markdown around it, with which it may have been copied."""
    match = _FENCED.fullmatch(text)
    return match[1] if match else text


def _whole(text: str) -> str:
    """The text, with the braces that are missing where somebody copied an object with its name only."""
    if not text.lstrip().startswith('"'):
        return text
    return f"{{{text.rstrip().removesuffix(',')}}}"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedServerList(_("A name is given twice in one object."))
    return result


def _entry(name: str, raw: object) -> Entry:
    cleaned = " ".join(name.split())
    if not cleaned or not cleaned.isprintable() or len(cleaned) > MAX_NAME_LENGTH:
        raise ValueError(f"A name has 1 to {MAX_NAME_LENGTH} visible characters.")
    if not isinstance(raw, dict):
        raise ValueError("It is not an object.")
    raw = _in_our_shape(raw)
    url = next((raw[key] for key in _URL_KEYS if raw.get(key)), "")
    command = raw.get("command") or ""
    if not isinstance(url, str) or not isinstance(command, str):
        raise ValueError("“url” and “command” are texts.")
    if bool(url) == bool(command):
        raise ValueError("Either “url” or “command” is needed.")
    own = _own(raw.get("trellis"))
    return Entry(
        name=cleaned,
        transport=_transport(raw, is_stdio=bool(command)),
        url=url[:MAX_TEXT_LENGTH],
        headers=_texts_by_name(raw.get("headers"), "headers"),
        command=command[:MAX_TEXT_LENGTH],
        args=_texts(raw.get("args"), "args"),
        env=_texts_by_name(raw.get("env"), "env"),
        is_disabled=raw.get("disabled") is True or raw.get("enabled") is False,
        is_required=own.get("required") is True,
        title=_printable(str(own.get("title", "")))[:100],
        protocol=_protocol(own.get("protocol", Protocol.AUTO.value)),
        uses_sign_in=own.get("auth") == "oauth",
        has_shared_account=own.get("accounts") == "workspace",
        scope=str(own.get("scope", "")),
    )


def _in_our_shape(raw: dict[str, Any]) -> Mapping[str, Any]:
    """An entry of another client as we write it: its program in one text, its arguments and variables beside it.

    Source: OpenCode's configuration, "mcp"; Zed's settings, "context_servers", also as they were before.
    """
    command = raw.get("command")
    if isinstance(command, (dict, list)) and raw.get("args"):
        raise ValueError("“args” is given twice.")
    if isinstance(command, list):
        program, *args = _texts(command, "command") or ("",)
        raw = {**raw, "command": program, "args": args}
    elif isinstance(command, dict):
        inner = {key: command[key] for key in ("args", "env") if key in command}
        raw = {**raw, **inner, "command": command.get("path")}
    if "environment" in raw:
        raw = {"env": raw["environment"], **raw}
    if raw.get("type") in ("local", "remote"):
        return {key: _with_our_variables(value) for key, value in raw.items()}
    return raw


def _with_our_variables(value: Any) -> Any:
    """A text, or the texts of a list or object, with `${env:NAME}` for `{env:NAME}`, as OpenCode has variables."""
    if isinstance(value, list):
        return [_with_our_variable(one) for one in value]
    if isinstance(value, dict):
        return {name: _with_our_variable(one) for name, one in value.items()}
    return _with_our_variable(value)


def _with_our_variable(value: Any) -> Any:
    return _VARIABLE_OF_OPENCODE.sub(r"$\g<0>", value) if isinstance(value, str) else value


def _transport(raw: Mapping[str, Any], *, is_stdio: bool) -> str:
    given = raw.get("type") or raw.get("transport") or ""
    transport = transports.by_keyword(str(given).lower())
    if transport is None:
        known = ", ".join(transports.keywords())
        raise ValueError(f"“type” is none of {known} and {transports.AUTO}.")
    if is_stdio:
        if transport not in (transports.AUTO, transports.STDIO):
            raise ValueError("A server with a “command” is of the type stdio.")
        return transports.STDIO
    if transport == transports.STDIO:
        raise ValueError("A server of the type stdio has a “command”.")
    return transport


def _own(raw: object) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict) or set(raw) - _OWN_KEYS:
        raise ValueError(f"“trellis” may hold {', '.join(sorted(_OWN_KEYS))}.")
    if not isinstance(raw.get("required", False), bool):
        raise ValueError("“trellis.required” is true or false.")
    if raw.get("auth", "oauth") != "oauth":
        raise ValueError("“trellis.auth” is oauth, or is left out.")
    if raw.get("accounts", "user") not in ("user", "workspace"):
        raise ValueError("“trellis.accounts” is user or workspace.")
    if not isinstance(raw.get("scope", ""), str):
        raise ValueError("“trellis.scope” is a text.")
    return raw


def _protocol(raw: object) -> Protocol:
    try:
        return Protocol(str(raw))
    except ValueError:
        known = ", ".join(one.value for one in Protocol)
        raise ValueError(f"“trellis.protocol” is one of {known}.") from None


def _texts(raw: object, what: str) -> tuple[str, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) > _MAX_TEXTS:
        raise ValueError(f"“{what}” is a list of texts.")
    return tuple(_text(one, what) for one in raw)


def _texts_by_name(raw: object, what: str) -> dict[str, str]:
    if raw is None:
        return {}
    if not isinstance(raw, dict) or len(raw) > _MAX_TEXTS:
        raise ValueError(f"“{what}” is an object of texts.")
    return {str(name)[:200]: _text(value, what) for name, value in raw.items()}


def _text(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"“{what}” holds something that is no text.")
    text = str(value)
    if "\0" in text or len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"“{what}” holds a text that cannot be used.")
    return text


def looks_unfilled(text: str) -> bool:
    """Whether a variable seems to stand in it instead of a value. A password may look so, too."""
    patterns = (_VARIABLE, _BARE_VARIABLE, _VARIABLE_OF_OPENCODE)
    return any(pattern.search(text) for pattern in patterns)


def fill_text(text: str, environment: Mapping[str, str]) -> str:
    """Put variables' values into one text.

    Raises:
        MissingVariable: one has neither a value nor a default.
    """
    missing: list[str] = []
    filled = _fill(text, _offered(environment), missing)
    if missing:
        raise MissingVariable(missing)
    return filled


def _offered(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not _KEPT_BACK.fullmatch(name)}


def _fill(text: str, values: Mapping[str, str], missing: list[str]) -> str:
    return _VARIABLE.sub(lambda match: _value(match, values, missing), text)


def _value(match: re.Match[str], values: Mapping[str, str], missing: list[str]) -> str:
    name, default = match["name"], match["default"]
    if value := values.get(name):
        return value
    if default is not None:
        return default
    missing.append(name)
    return ""


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)[:100]
