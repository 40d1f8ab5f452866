"""Texts that people see: templates, models, forms and notices hold none that cannot be translated."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from django.template import engines
from django.template.base import Lexer, TokenType

from config.env import ROOT
from tests.config.sources import APPS, ON_THEIR_OWN, TEMPLATES

#: Attributes that people read or hear.
SHOWN: Final = {
    *("alt", "aria-description", "aria-label", "label", "placeholder", "title"),
    *("data-confirm", "data-confirm-label"),
}
#: Arguments of tags that become texts on the page.
ARGUMENTS: Final = {
    "all",
    "definition",
    "empty",
    "heading",
    "help",
    "label",
    "note",
    "term",
    "text",
    "title",
}
#: Elements whose content is no language.
CODE: Final = {"code", "kbd", "pre", "samp", "script", "style"}
#: Arguments of fields that people read.
FIELD_TEXTS: Final = {"empty_label", "help_text", "label", "verbose_name"}
#: What makes a mail or a message of an alert, and its arguments that people read.
MAILS: Final = {"AlertMessage", "compose"}
MAIL_TEXTS: Final = {"subject", "text"}
#: A field that names its label, is hidden, or is given all that it has.
HAS_LABEL: Final = re.compile(r"\blabel=|HiddenInput|\*\*")
#: Which argument of a call people read.
TEXT_ARGUMENTS: Final = {
    "add_error": 1,
    "error": 1,
    "info": 1,
    "success": 1,
    "warning": 1,
    "ValidationError": 0,
}
#: Arguments of errors that people read, beside the first ones.
ERROR_TEXTS: Final = {"fields", "message"}
#: Attributes of errors that people read.
ERROR_ATTRIBUTES: Final = {"advice", "default_message"}
#: The kind of a failure, which is no text.
CODE_WORD: Final = re.compile(r"[a-z_.]+$")
#: Folders and files whose texts are for programs and for those who run them.
FOR_PROGRAMS: Final = re.compile(
    r"(^|/)(api|management|migrations|node_modules)(/|\.py$)|^(\.venv|bench|config|tests)/"
)
#: What is the same in every language.
SAME: Final = {"Trellis", "ms", "UTC", "p50", "p95", "p99"}

DEFINITION: Final = re.compile(r"^\s*(?:class|def) (\w+)", re.MULTILINE)
#: `_` where it is not called. Fewer files have it, and only those are parsed.
MARK_AS_A_NAME: Final = re.compile(r"\b_\b(?!\()")
WORD: Final = re.compile(r"\w*[^\W\d_]\w*")
#: A word with a capital, or two words.
SENTENCE: Final = re.compile(r"\b[A-Z][a-z]+|[A-Za-z]+ [a-z]+")
ARGUMENT: Final = re.compile(r"""(\w+)=("[^"]*"|'[^']*')""")
HEADING: Final = re.compile(r"""\s("[^"]*")""")
DOUBLED: Final = re.compile(r"""_\(("[^"]*%[^"]*"|'[^']*%[^']*')\)""")
FALLBACK: Final = re.compile(r"""\|(?:default|default_if_none|yesno):("[^"]*"|'[^']*')""")


def _has_words(text: str) -> bool:
    return any(word not in SAME for word in WORD.findall(text))


class _Page(HTMLParser):
    """Finds texts in what is left of a page without Django's tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag in CODE
        for name, value in attrs:
            is_shown = name in SHOWN or (
                tag == "input" and name == "value" and ("type", "submit") in attrs
            )
            if is_shown and value and not value.startswith("{") and _has_words(value):
                self.found.append((self.getpos()[0], f"{name}: {value}"))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in CODE

    def handle_data(self, data: str) -> None:
        if not self._code and _has_words(data):
            before = len(data) - len(data.lstrip())
            self.found.append(
                (self.getpos()[0] + data.count("\n", 0, before), " ".join(data.split()))
            )


def _in_tag(contents: str) -> list[str]:
    """Find texts in one of Django's tags or variables."""
    found = ["pluralize knows English only"] if "|pluralize" in contents else []
    found += [f"{text}: Django doubles the percent sign" for text in DOUBLED.findall(contents)]
    found += [
        text for text in FALLBACK.findall(contents) if _has_words(text) and text[1:-1] != "yes,no"
    ]
    found += [
        text for name, text in ARGUMENT.findall(contents) if name in ARGUMENTS and _has_words(text)
    ]
    if contents.partition(" ")[0] in {"panel", "table", "table_head"}:
        found += [text for text in HEADING.findall(contents) if _has_words(text)]
    return found


def bare_texts(source: str) -> list[tuple[int, str]]:
    """Find texts that people see and that no catalogue can hold; each with its line."""
    page, found, skipped_until = "", [], ""
    for token in Lexer(source).tokenize():
        contents, kind = token.contents, token.token_type
        if skipped_until:
            page += "\n" * contents.count("\n")
            if kind is TokenType.BLOCK and contents.startswith(skipped_until):
                skipped_until = ""
            continue
        if kind is TokenType.TEXT:
            page += contents
        elif kind is not TokenType.COMMENT:
            found += [(token.lineno or 0, text) for text in _in_tag(contents)]
            if kind is TokenType.BLOCK and contents.split()[0] in {"blocktranslate", "comment"}:
                skipped_until = f"end{contents.split()[0]}"
            elif contents == "block page_class":
                skipped_until = "endblock"
    parser = _Page()
    parser.feed(page)
    parser.close()
    return sorted(found + parser.found)


def test_templates_hold_no_text_that_cannot_be_translated() -> None:
    """REL-300: every text of a template goes through gettext, in tags and attributes too."""
    assert len(TEMPLATES) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line} {text}"
        for _, path in TEMPLATES
        for line, text in bare_texts(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("<p>Hello</p>", 1),
        ('<p>{% translate "Hello" %}</p>', 0),
        ("<p>{% blocktranslate %}Hello {{ name }}{% endblocktranslate %} again</p>", 1),
        ('<p title="{{ name }} is here">{{ name }}</p>', 1),
        ('<input type="submit" value="Send">', 1),
        (
            '<p class="quiet" title="{% translate "Hello" %}">· <code>tool</code> {{ took }} ms</p>',
            0,
        ),
        ('{% include "a.html" with title="Hello" name="hello" %}', 1),
        ('{% include "a.html" with title=_("Hello") %}', 0),
        ('{% table_head _("Name") "Size" right="2" %}', 1),
        ('{% table "Table of files" _("Name") %}{% endtable %}', 1),
        ('{% panel "Files" id="files-heading" %}{% endpanel %}', 1),
        ('{{ name|default:"nobody" }}{{ name|default:_("nobody") }}', 1),
        ("{{ count }}{{ count|pluralize }}", 1),
        ('{% include "a.html" with title=_("5 % off") %}{% translate "5 % off" as title %}', 1),
        ("{# Hello #}{% comment %}Hello{% endcomment %}", 0),
    ],
)
def test_the_check_of_texts_sees(source: str, count: int) -> None:
    """REL-300: the check finds bare texts, and those alone."""
    assert len(bare_texts(source)) == count


def _texts(tree: ast.AST) -> Iterator[ast.expr]:
    """Find what models, forms, the admin and notices show."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner, _, name = ast.unparse(node.func).rpartition(".")
            if (
                owner == "forms"
                and name.endswith("Field")
                and not HAS_LABEL.search(ast.unparse(node))
            ):
                yield ast.Constant("A field without a label", lineno=node.lineno)
            if owner not in {"serializers", "exceptions", "django_filters"}:
                wanted = FIELD_TEXTS if name.endswith(("Field", "ForeignKey")) else set()
                wanted = {"description"} if owner == "admin" else wanted
                wanted = MAIL_TEXTS if name in MAILS else wanted
                yield from (word.value for word in node.keywords if word.arg in wanted)
                is_model_field = owner == "models" and name.endswith("Field")
                at = (
                    0 if is_model_field else TEXT_ARGUMENTS.get(name) if owner != "logger" else None
                )
                yield from () if at is None else node.args[at : at + 1]
        elif isinstance(node, ast.FunctionDef):
            if any("admin.display" in ast.unparse(one) for one in node.decorator_list):
                yield from _shown_texts(node)
        elif isinstance(node, ast.ClassDef):
            bases = " ".join(ast.unparse(base) for base in node.bases)
            is_choices = "Choices" in bases
            for line in (line for line in node.body if isinstance(line, ast.Assign)):
                if "StrEnum" in bases and isinstance(line.value, ast.Tuple):
                    yield from line.value.elts[1:]
                elif is_choices and isinstance(line.value, ast.Tuple):
                    yield line.value.elts[-1]
                elif ast.unparse(line.targets[0]) in {"verbose_name", "verbose_name_plural"}:
                    yield line.value


def _shown_texts(column: ast.FunctionDef) -> Iterator[ast.expr]:
    """Give what a column of the admin may show: each value that it returns, whichever way it chooses."""
    for node in ast.walk(column):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value = node.value
        yield from (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)


def _words_of(text: ast.expr) -> str:
    """Give what is said in so many words: what is filled in is no text of ours."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    listed = [part.value for part in parts if isinstance(part, ast.Constant)]
    return " ".join(value for value in listed if isinstance(value, str))


def bare_words(source: str) -> list[tuple[int, str]]:
    """Find texts of models, forms, the admin and notices that no catalogue can hold; each with its line."""
    found = [(text.lineno, _words_of(text)) for text in _texts(ast.parse(source))]
    return [(line, words) for line, words in found if _has_words(words)]


def test_models_forms_and_notices_hold_no_text_that_cannot_be_translated() -> None:
    """REL-300: labels, help texts, choices, form errors, notices and the admin's columns go through gettext."""
    names = {path: path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}
    sources = {name: path for path, name in names.items() if not FOR_PROGRAMS.search(name)}
    assert len(sources) > 300
    found = [
        f"{name}:{line} {text}"
        for name, path in sources.items()
        for line, text in bare_words(path.read_text())
    ]
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('name = forms.CharField(label="Name", help_text=_("Shown."))', 1),
        ('name = models.CharField("name", max_length=5)', 1),
        ('name = models.CharField(_("name"), help_text=TEXT)', 0),
        ('messages.success(request, f"{name} is saved.")', 1),
        ('messages.success(request, _("%(name)s is saved.") % {"name": name})', 0),
        ('class State(models.TextChoices):\n    ON = "on", "On"\n    OFF = "off", _("Off")', 1),
        ('class Deed(StrEnum):\n    READ = "read", "Read", _("It was read.")\n    OFF = "off"', 1),
        ('class Meta:\n    verbose_name = "rule"', 1),
        ("name = forms.CharField(max_length=5)", 1),
        ("name = forms.CharField(widget=forms.HiddenInput)", 0),
        ('form.add_error("name", "Choose another.")', 1),
        ('name = serializers.CharField(help_text="For programs.")', 0),
        ('mail = compose(subject=f"Alert: {name}", text=_("Now: %(amount)s.") % values)', 1),
        ('message = AlertMessage(subject=_("Alert"), text=f"{name} is back to normal.")', 1),
        ('@admin.display\ndef who(row):\n    return row.name if row.name else "Nobody yet"', 1),
        ('@admin.display\ndef who(row):\n    return row.name or "–" if row else _("Nobody")', 0),
    ],
)
def test_the_check_of_python_texts_sees(source: str, count: int) -> None:
    """REL-300: the check finds bare texts of Python, and those alone."""
    assert len(bare_words(source)) == count


def test_the_check_of_python_texts_looks_for_what_there_is() -> None:
    """REL-300: a class or function that gets another name is not left out from then on."""
    defined = {
        name
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        for name in DEFINITION.findall(path.read_text())
    }
    assert defined >= MAILS


def error_names(trees: Iterable[ast.AST]) -> set[str]:
    """Name DomainError and every class that descends from it."""
    bases: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ClassDef):
            above = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            bases.setdefault(node.name, set()).update(above)
    names: set[str] = set()
    while (
        more := {name for name, above in bases.items() if above & (names | {"DomainError"})} - names
    ):
        names |= more
    return names | {"DomainError"}


_INSIDE: Final[dict[type[ast.expr], Callable[[Any], list[ast.expr]]]] = {
    ast.IfExp: lambda text: [text.body, text.orelse],
    ast.BoolOp: lambda text: text.values,
    ast.BinOp: lambda text: [text.left, text.right] if isinstance(text.op, ast.Add) else [],
    ast.Dict: lambda text: text.values,
    ast.List: lambda text: text.elts,
    ast.ListComp: lambda text: [text.elt],
    ast.NamedExpr: lambda text: [text.value],
    ast.Subscript: lambda text: [text.value],
}


def _values_of(text: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """Follow what an error is given to the texts that are written out."""
    if isinstance(text, (ast.Constant, ast.JoinedStr)):
        yield text
    elif isinstance(text, ast.Name):
        for value in assigned.get(text.id, []):
            yield from _values_of(value, {})
    else:
        for value in _INSIDE.get(type(text), lambda _text: [])(text):
            yield from _values_of(value, assigned)


def _last_name(function: ast.expr) -> str:
    """Give what a call names last: ``errors.NotFound(...)`` is one of ``NotFound``."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def bare_errors(tree: ast.AST, names: set[str]) -> list[tuple[int, str]]:
    """Find texts of errors that no catalogue can hold; each with its line."""
    texts = list[ast.expr]()
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                assigned.setdefault(ast.unparse(target).partition("[")[0], []).append(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in names:
            texts += [
                *node.args,
                *(word.value for word in node.keywords if word.arg in ERROR_TEXTS),
            ]
        elif isinstance(node, ast.ClassDef) and node.name in names:
            texts += [
                line.value
                for line in node.body
                if isinstance(line, (ast.Assign, ast.AnnAssign))
                and line.value is not None
                and ast.unparse(line).partition(":")[0].partition(" =")[0] in ERROR_ATTRIBUTES
            ]
    values = {value for text in texts for value in _values_of(text, assigned)}
    found = sorted((value.lineno, _words_of(value)) for value in values)
    return [
        (line, words) for line, words in found if _has_words(words) and not CODE_WORD.match(words)
    ]


def test_errors_hold_no_text_that_cannot_be_translated() -> None:
    """REL-680: what services refuse with goes through gettext, messages of fields too."""
    trees = {
        name: ast.parse(path.read_text())
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if (name := path.relative_to(ROOT).as_posix()) not in ON_THEIR_OWN
        and not re.search(r"/(management|migrations|node_modules)/", name)
    }
    names = error_names(trees.values())
    assert len(names) > 50
    names |= {"Unaskable", "refuse_because", "refuse_builtin"}
    found = [
        f"{name}:{line} {text}"
        for name, tree in trees.items()
        for line, text in bare_errors(tree, names)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('raise NotFound("Not found.")', 1),
        ('raise NotFound(_("Not found."))', 0),
        ('raise NotFound(f"{name} is gone.")', 1),
        ('raise NotFound(_("%(name)s is gone.") % {"name": name})', 0),
        ('raise InvalidInput(fields={"name": ["Give a name."] + ["And more."]})', 2),
        ('fault = "Give a name."\nraise InvalidInput(fields={"name": [fault]})', 1),
        ('raise Failed("timeout", "The server is slow." if slow else None)', 1),
        ('class Failed(DomainError):\n    code = "failed"\n    default_message = "It failed."', 1),
    ],
)
def test_the_check_of_errors_sees(source: str, count: int) -> None:
    """REL-680: the check finds bare texts of errors, and those alone."""
    assert len(bare_errors(ast.parse(source), {"NotFound", "InvalidInput", "Failed"})) == count


def _names_of(function: ast.AST) -> Iterator[ast.Name]:
    """Give the names in a function, without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Name):
            yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _names_of(child)


def test_no_function_hides_the_mark_of_texts() -> None:
    """REL-680: whoever throws a value away into `_` cannot translate in the same function."""
    found = [
        f"{path.relative_to(ROOT)}:{function.lineno}"
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if "node_modules" not in path.parts
        if MARK_AS_A_NAME.search(text := path.read_text())
        for function in ast.walk(ast.parse(text))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and {type(name.ctx) for name in _names_of(function) if name.id == "_"}
        >= {ast.Load, ast.Store}
    ]
    assert not found, "\n".join(found)


def bare_sentences(source: str) -> list[tuple[int, str]]:
    """Find what reads as words of ours, not as a name, wherever it stands; each with its line."""

    def look(node: ast.AST) -> Iterator[tuple[int, str]]:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_marked = isinstance(node, ast.Call) and ast.unparse(node.func) in {"_", "gettext_lazy"}
        if is_docstring or is_marked:
            return
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and SENTENCE.search(text):
            yield getattr(node, "lineno", 0), text
        for child in ast.iter_child_nodes(node):
            yield from look(child)

    body = [one for one in ast.parse(source).body if "__all__" not in ast.unparse(one)[:7]]
    return [found for one in body for found in look(one)]


def test_cards_hold_no_text_that_cannot_be_translated() -> None:
    """REL-300: what views tell templates in words goes through gettext too."""
    paths = sorted(ROOT.glob("*/pages/cards/*.py"))
    assert len(paths) > 3
    found = [
        f"{path.relative_to(ROOT)}:{line} {text}"
        for path in paths
        for line, text in bare_sentences(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('label: Final = "Read-only"', 1),
        ('label = f"{time}: it answered"', 1),
        ('badge(tone="ok", label=_("Read-only"))', 0),
        ('def state():\n    """Say how it is."""\n    return "auth_required"', 0),
    ],
)
def test_the_check_of_cards_sees(source: str, count: int) -> None:
    """REL-300: the check finds bare texts of cards, and those alone."""
    assert len(bare_sentences(source)) == count


def test_a_question_before_a_form_is_sent_names_what_its_button_does() -> None:
    """REL-951: as the button of the form does; "Continue" says nothing."""
    unnamed = [
        path.name
        for _, path in TEMPLATES
        if (text := path.read_text()).count('data-confirm="') != text.count('data-confirm-label="')
    ]
    assert unnamed == []


@pytest.mark.parametrize(("folder", "path"), TEMPLATES, ids=lambda path: path.name)
def test_every_template_compiles(folder: Path, path: Path) -> None:
    """Ours: also those that no test draws."""
    engines["django"].get_template(str(path.relative_to(folder)))
