"""Texts that people see: templates, models, forms and notices hold none that cannot be translated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from django.template import engines
from django.template.base import Lexer, TokenType

from config.env import ROOT

FOLDERS: Final = (ROOT / "templates", *ROOT.glob("*/templates"), *ROOT.glob("*/*/templates"))
TEMPLATES: Final = sorted(
    (folder, path)
    for folder in FOLDERS
    for path in folder.rglob("*.*")
    if path.suffix in {".html", ".txt"}
)
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
#: Which argument of a call people read.
TOLD: Final = {
    "add_error": 1,
    "error": 1,
    "info": 1,
    "success": 1,
    "warning": 1,
    "ValidationError": 0,
}
#: Folders and files whose texts are for programs and for those who run them.
FOR_PROGRAMS: Final = re.compile(
    r"(^|/)(api|management|migrations|node_modules)(/|\.py$)|^(\.venv|bench|config|tests)/"
)
#: What is the same in every language.
SAME: Final = {"Trellis", "ms", "UTC", "p50", "p95", "p99"}

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
    if contents.startswith("table_head "):
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
            if owner not in {"serializers", "exceptions", "django_filters"}:
                wanted = FIELD_TEXTS if name.endswith(("Field", "ForeignKey")) else set()
                wanted = {"description"} if owner == "admin" else wanted
                yield from (word.value for word in node.keywords if word.arg in wanted)
                is_model_field = owner == "models" and name.endswith("Field")
                at = 0 if is_model_field else TOLD.get(name) if owner != "logger" else None
                yield from () if at is None else node.args[at : at + 1]
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


def _words_of(text: ast.expr) -> str:
    """Give what is said in so many words: what is filled in is no text of ours."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    said = [part.value for part in parts if isinstance(part, ast.Constant)]
    return " ".join(value for value in said if isinstance(value, str))


def bare_words(source: str) -> list[tuple[int, str]]:
    """Find texts of models, forms, the admin and notices that no catalogue can hold; each with its line."""
    found = [(text.lineno, _words_of(text)) for text in _texts(ast.parse(source))]
    return [(line, words) for line, words in found if _has_words(words)]


def test_models_forms_and_notices_hold_no_text_that_cannot_be_translated() -> None:
    """REL-300: labels, help texts, choices, form errors and notices go through gettext."""
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
        ('form.add_error("name", "Choose another.")', 1),
        ('name = serializers.CharField(help_text="For programs.")', 0),
    ],
)
def test_the_check_of_python_texts_sees(source: str, count: int) -> None:
    """REL-300: the check finds bare texts of Python, and those alone."""
    assert len(bare_words(source)) == count


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


@pytest.mark.parametrize(("folder", "path"), TEMPLATES, ids=lambda path: path.name)
def test_every_template_compiles(folder: Path, path: Path) -> None:
    """Ours: also those that no test draws."""
    engines["django"].get_template(str(path.relative_to(folder)))
