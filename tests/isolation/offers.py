"""What pages offer to send, and whether whoever sees it may."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import urljoin

from django.conf import settings
from django.contrib.messages import SUCCESS, get_messages
from django.db import transaction
from django.test import Client

from config.bootstrap import ROOT
from tests.extent import IS_FULL
from workspaces.errors import PermissionDenied

APPS: Final = ("audit", "chat", "config", "mcp_servers", "workspaces")
RIGHTS: Final = frozenset({"role", "is_auditor", "scopes", "visibility"})
"""Fields whose other choices are sent as well. For a release, those of all fields are."""
MOST_CHOICES: Final = 12
NOT_FOR_THEM: Final = frozenset({403, 404, 405})
_WORDS: Final = re.compile(r'PermissionDenied\(\s*_\(\s*"([^"]+)"')
_WAITS: Final = "A transaction is open"
"""As the product refuses to wait for others in a transaction, which is around these tests: nobody was refused."""
_ROWS: Final = "_selected_action"

Fields = dict[str, list[str]]


@dataclass
class Form:
    """A form that POSTs."""

    address: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    """What a browser sends of it as it stands."""
    others: list[tuple[str, str]] = field(default_factory=list)
    """What else may be chosen in it."""
    buttons: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, value and own address of each that sends it."""
    actions: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    """Of a list in the admin: what may be done with several rows, and the rows."""


class _Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.forms: list[Form] = []
        self.form: Form | None = None
        self.by_id: dict[str, Form] = {}
        self.elsewhere: list[tuple[str, tuple[str, str, str]]] = []
        """Buttons that stand outside of their form, with its id."""
        self.select = ""
        self.options: list[tuple[str, bool]] = []
        self.area = ""
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        is_form = tag == "form" and of.get("method", "").lower() == "post"
        if is_form or "hx-post" in of:
            address = of.get("hx-post") or of.get("action") or self.page
            made = Form(urljoin(self.page, address))
            self.forms.append(made)
            if tag == "form":
                self.form = self.by_id[of.get("id", "")] = made
            else:
                made.buttons.append(("", "", ""))
        name, kind = of.get("name", ""), of.get("type", "")
        if "form" in of:
            if tag in {"button", "input"} and kind in {"", "submit"}:
                button = (name, of.get("value", ""), of.get("formaction", ""))
                self.elsewhere.append((of["form"], button))
        elif self.form is None:
            return
        elif tag == "input" and name:
            self._input(self.form, name, kind, of)
        elif tag == "select":
            self.select, self.options = name, []
        elif tag == "option" and self.select:
            self.options.append((of.get("value", ""), "selected" in of))
        elif tag == "textarea":
            self.area, self.text = name, ""
        elif tag == "button" and kind in {"", "submit"}:
            self.form.buttons.append((name, of.get("value", ""), of.get("formaction", "")))

    def close(self) -> None:
        super().close()
        for form_id, button in self.elsewhere:
            if form_id in self.by_id:
                self.by_id[form_id].buttons.append(button)

    @staticmethod
    def _input(form: Form, name: str, kind: str, of: dict[str, str]) -> None:
        if kind in {"submit", "image"}:
            form.buttons.append((name, of.get("value", ""), of.get("formaction", "")))
        elif name == _ROWS and kind == "checkbox":
            form.rows.append(of.get("value", ""))
        elif kind in {"checkbox", "radio"} and "checked" not in of:
            form.others.append((name, of.get("value", "on")))
        elif kind not in {"file", "button", "reset"}:
            form.fields.append((name, of.get("value", "on" if kind == "checkbox" else "")))

    def handle_data(self, data: str) -> None:
        if self.area:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.form = None
        elif self.form is None:
            return
        elif tag == "select" and self.select:
            self._choices(self.form)
        elif tag == "textarea" and self.area:
            self.form.fields.append((self.area, self.text.removeprefix("\n")))
            self.area = ""

    def _choices(self, form: Form) -> None:
        values = [value for value, _is_chosen in self.options]
        chosen = [value for value, is_chosen in self.options if is_chosen] or values[:1]
        if self.select == "action":
            form.actions = [value for value in values if value]
        elif len(values) <= MOST_CHOICES:
            form.others += [(self.select, value) for value in values if value not in chosen]
        form.fields += [(self.select, value) for value in chosen]
        self.select = ""


def refusals() -> re.Pattern[str]:
    """Whatever the product says to somebody who may not do something."""
    words = {str(PermissionDenied.default_message)}
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            words.update(_WORDS.findall(path.read_text()))
    patterns = (re.sub(r"%\\\(\w+\\\)s", ".+?", re.escape(one)) for one in words)
    return re.compile("|".join(patterns))


class Offers:
    """Sends what pages offer to one person, and takes back whatever comes of it."""

    def __init__(self, client: Client, kind_of: Callable[[str], Any]) -> None:
        """Look with the session that is signed in there.

        Args:
            kind_of: gives the route of an address.
        """
        self._session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self._kind_of = kind_of
        self._refusals = refusals()
        self._tried: set[Any] = set()
        self._is_done = False
        """Whether the page said so, of what was sent last."""
        self.sent = 0
        self.refused: list[str] = []
        """In words: what was offered, and refused."""

    def look_at(self, page: str, address: str) -> None:
        """Send all of a page that was not sent from another page of its kind."""
        reader = _Reader(address)
        reader.feed(page)
        reader.close()
        for form in reader.forms:
            self._send_actions(form, address)
            for target, fields, what in _ways(form, address):
                route = self._kind_of(target)
                kind = (route and route[0], what, frozenset(fields))
                if kind not in self._tried:
                    self._tried.add(kind)
                    if why := self._refusal(target, fields):
                        self.refused.append(f"{target} on {address} ({what}): {why}")

    def _send_actions(self, form: Form, address: str) -> None:
        """An action on rows that works for none of them, and is refused to the person, should not be offered."""
        list_address = form.address.partition("?")[0]
        for action in form.actions:
            if not form.rows or (list_address, action) in self._tried:
                continue
            self._tried.add((list_address, action))
            found: list[str] = []
            for row in form.rows:
                fields: Fields = {"action": [action], _ROWS: [row], "confirmed": ["1"]}
                if why := self._refusal(form.address, fields):
                    found.append(why)
                elif self._is_done:
                    break
            else:
                # Rows for which there is nothing to do are neither.
                if len(found) * 2 > len(form.rows):
                    self.refused.append(f"{action} on {address}, for most rows: {found[0]}")

    def _refusal(self, address: str, fields: Fields) -> str:
        """Why something was refused to this person; empty: it was not, whatever else is wrong with it."""
        self.sent += 1
        client = Client(raise_request_exception=False)
        client.cookies[settings.SESSION_COOKIE_NAME] = self._session
        with transaction.atomic():
            answer: Any = client.post(address, fields)
            transaction.set_rollback(True)
        if answer.status_code >= 500:
            error = repr(answer.exc_info[1]) if answer.exc_info else str(answer.status_code)
            return "" if _WAITS in error else error
        if answer.status_code in NOT_FOR_THEM:
            return str(answer.status_code)
        messages = [*get_messages(answer.wsgi_request)]
        self._is_done = any(one.level == SUCCESS for one in messages)
        listed = [str(one) for one in messages]
        if not answer.streaming and "html" in answer.get("Content-Type", ""):
            listed.append(answer.content.decode())
        found = [one for text in listed for one in self._refusals.findall(text)]
        return found[0] if found else ""


def _ways(form: Form, address: str) -> Iterator[tuple[str, Fields, str]]:
    """Each button of a form, and with its first one each other choice."""
    for name, value, own in form.buttons:
        target = urljoin(address, own) if own else form.address
        yield target, _sent(form, [(name, value)] if name else []), f"{name}={value[:20]}"
    if form.buttons:
        first, pressed, _own = form.buttons[0]
        button = [(first, pressed)] if first else []
        for name, value in form.others:
            if IS_FULL or name in RIGHTS:
                changed = [*button, (name, value)]
                yield form.address, _sent(form, changed), f"{name} as {value[:20]}"


def _sent(form: Form, changed: list[tuple[str, str]]) -> Fields:
    names = {name for name, _value in changed}
    sent: Fields = {}
    for name, value in [*(one for one in form.fields if one[0] not in names), *changed]:
        if name != "csrfmiddlewaretoken":
            sent.setdefault(name, []).append(value)
    return sent
