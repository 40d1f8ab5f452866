"""What the demo model says. No AI: it matches the words of a question to the tools it is offered.

It knows no tool by name. A tool is chosen by how many of the question's words stand in its name and
description; its arguments are filled from the question by their names, types and descriptions. Pure.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from uuid_utils.compat import uuid7

from chat.demo_model.attached_files import search_of, speak_of_attached

_WORDS = re.compile(r"[a-z0-9]+")
_QUOTED = re.compile(r"[\"“”„«»‘’']([^\"“”„«»‘’']{1,200})[\"“”„«»‘’']")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_URL = re.compile(r"https?://\S+")
_CLOCK = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b")
_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "give",
        "has",
        "have",
        "how",
        "i",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "please",
        "show",
        "so",
        "some",
        "tell",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "this",
        "to",
        "us",
        "use",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
_LIKE: dict[str, frozenset[str]] = {
    "delete": frozenset({"remove", "erase", "drop"}),
    "list": frozenset({"all", "which", "show", "every"}),
    "read": frozenset({"open", "say", "content", "contents"}),
    "create": frozenset({"write", "make", "draft", "new"}),
    "write": frozenset({"save", "create", "add", "update", "note", "store"}),
    "current": frozenset({"now"}),
    "convert": frozenset({"translate"}),
    "report": frozenset({"summary", "slow"}),
}
_LEAST_SCORE = 2.0
_ALOUD = re.compile(r"\bthink(ing)? (aloud|out loud|first)\b[:,]?", re.I)


_FORMATS = re.compile(r"\bshow\b.*\bformat(ting|s)?\b", re.I)
_SHOWCASE = r"""Text can be **bold**, hold a [link](https://example.org/docs), a formula like $e^{i\pi} + 1 = 0$ and a note.[^1]

$$\int_0^1 x^2 \, dx = \frac{1}{3}$$

- [x] Lists can have tasks
- [ ] that are open

| City | People | Share |
|---|--:|--:|
| Ulm | 126,000 | 12 % |
| Bonn | 336,000 | 31 % |
| Aachen | 249,000 | 23 % |

```mermaid
flowchart LR
  Question --> Bud --> Tool[Tool of a server]
  Tool --> Answer
```

```python
def total(rows):
    amount = 0
    for row in rows:
        amount += row.price
    return amount
```

```diff
@@ -1,3 +1,3 @@
 def total(rows):
-    return 0
+    return sum(row.price for row in rows)
```

[^1]: Notes stand below, and lead back.
"""


@dataclass(frozen=True, slots=True)
class DemoCall:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class DemoReply:
    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    thought: str = ""
    """How it came to this, where the question asks it to think aloud."""


def reply_to(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    tool_choice: Any = "auto",
) -> DemoReply:
    """Answer a conversation: call a tool, or speak of what the tools gave."""
    question, attached = _parted(_last_question(messages))
    is_aloud = _ALOUD.search(question) is not None
    question = _ALOUD.sub(" ", question)
    results = _results_since_question(messages)
    if results:
        return DemoReply(text=_speak_of(results))
    functions = [tool["function"] for tool in tools if isinstance(tool.get("function"), Mapping)]
    if tool_choice == "none":
        functions = []
    if attached:
        if looked_up := search_of(attached, question, functions, _stems):
            name, search = looked_up
            return DemoReply(
                calls=(DemoCall(f"call_{uuid7().hex[:24]}", name, json.dumps(search)),)
            )
        return DemoReply(text=speak_of_attached(attached, question, _stems))
    if _FORMATS.search(question):
        return DemoReply(text=_SHOWCASE)
    if isinstance(tool_choice, Mapping):
        forced = tool_choice.get("function", {}).get("name")
        functions = [function for function in functions if function["name"] == forced]
    least = _LEAST_SCORE if tool_choice in ("auto", "none", None) else -1.0
    ranked = sorted(functions, key=lambda function: -_score(question, function))
    for function in ranked[:1]:
        arguments, missing = _fill(question, function.get("parameters") or {})
        if _score(question, function) + 1.5 * len(missing) < least:
            break
        if missing:
            return DemoReply(text=_ask_for(function, missing))
        call = DemoCall(f"call_{uuid7().hex[:24]}", function["name"], json.dumps(arguments))
        return DemoReply(calls=(call,), thought=_thought(question, ranked) if is_aloud else "")
    return DemoReply(text=_small_talk(question, functions))


def _thought(question: str, ranked: Sequence[Mapping[str, Any]]) -> str:
    """How the best tool was found, as truthfully as it was."""
    scores = [f"- {_plain(str(one['name']))}: {_score(question, one):.1f}" for one in ranked[:5]]
    words = ", ".join(sorted(_stems(_QUOTED.sub(" ", question))))
    score_lines = "\n".join(scores)
    return f"The question has these words: {words}.\nHow well they match each tool:\n{score_lines}\nThe first one it is."


def _last_question(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if _is_question(message):
            return _text_of(message.get("content"))
    return ""


def _is_question(message: Mapping[str, Any]) -> bool:
    """Whether a person says it. Pictures of results come in a message of their own."""
    text = _text_of(message.get("content"))
    return message.get("role") == "user" and not text.startswith("[A picture that the tool")


def _parted(question: str) -> tuple[str, list[tuple[str, str]]]:
    """What was said, and what was attached to it: (what it is, its content)."""
    typed, *parts = re.split(r"\n\n(?=\[Attached)", f"\n\n{question}")
    heads = (part.partition("\n") for part in parts)
    return typed, [(head.strip(" []"), content) for head, _, content in heads]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [p.get("text", "") for p in content if isinstance(p, Mapping)]
        return " ".join(part for part in parts if isinstance(part, str))
    return ""


def _results_since_question(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(function name, result) of the calls made since the last question."""
    names: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    for message in messages:
        if _is_question(message):
            results.clear()
        for call in message.get("tool_calls") or []:
            names[call["id"]] = call["function"]["name"]
        if message.get("role") == "tool":
            name = names.get(str(message.get("tool_call_id")), "the tool")
            results.append((name, _text_of(message.get("content"))))
    return results


def _stems(text: str) -> set[str]:
    words = _WORDS.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return {_stem(word) for word in words if word not in _STOP_WORDS}


def _stem(word: str) -> str:
    for ending in ("ing", "es", "s", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            return word.removesuffix(ending)
    return word


def _score(question: str, function: Mapping[str, Any]) -> float:
    asked = _stems(_QUOTED.sub(" ", question))
    server, _, name = str(function["name"]).rpartition("__")
    in_name = _stems(name.replace("_", " "))
    described = _stems(str(function.get("description", "")).partition("]")[2])
    score = 3.0 * len(asked & in_name) + 1.0 * len(asked & described)
    score += 1.0 * len(asked & _stems(server.replace("_", " ")))
    for word in in_name:
        if asked & {_stem(like) for like in _LIKE.get(word, ())}:
            score += 2.0
    properties = (function.get("parameters") or {}).get("properties") or {}
    if _cities(question) and any("zone" in str(key).lower() for key in properties):
        score += 1.0
    _, missing = _fill(question, function.get("parameters") or {})
    # Better a tool whose arguments the question gives; among equals, one that leaves less unused.
    return score - 1.5 * len(missing) - 0.05 * len(in_name - asked)


def _fill(question: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Arguments out of the question, and the required ones that it does not give."""
    properties = schema.get("properties") or {}
    required = [key for key in schema.get("required") or [] if key in properties]
    quoted = _QUOTED.findall(question)
    numbers = [float(n) if "." in n else int(n) for n in _NUMBER.findall(_CLOCK.sub(" ", question))]
    zones = _cities(question)
    urls = _URL.findall(question)
    clocks = [f"{int(h):02}:{m}" for h, m in _CLOCK.findall(question)]
    named = _named_texts(question)
    arguments: dict[str, Any] = {}
    for key, prop in properties.items():
        hint = f"{key} {prop.get('description', '')} {prop.get('title', '')}".lower()
        kind = prop.get("type")
        value: Any = None
        if "default" in prop and key not in required:
            continue
        if prop.get("enum"):
            value = next((e for e in prop["enum"] if str(e).lower() in question.lower()), None)
        elif kind == "string" and ("timezone" in hint or "time zone" in hint):
            value = zones.pop(0) if zones else _local_zone(hint, key in required)
        elif kind == "string" and ("24-hour" in hint or key == "time") and clocks:
            value = clocks.pop(0)
        elif kind == "string" and ("url" in hint or "uri" in hint) and urls:
            value = urls.pop(0)
        elif kind in ("integer", "number") and numbers:
            value = numbers.pop(0)
            value = int(value) if kind == "integer" else value
        elif kind == "boolean":
            value = key.lower() in question.lower() if key in required else None
        elif kind == "string" and key in required:
            value = _text_for(hint, question, quoted, named)
        if value is not None:
            arguments[key] = value
    return arguments, [key for key in required if key not in arguments]


def _text_for(hint: str, question: str, quoted: list[str], named: list[str]) -> str | None:
    """A required text, out of what stands in quotes or after a colon; a file's own name and content are made up."""
    if "the whole content" in hint:
        return _draft(question)
    if quoted:
        return quoted.pop(0)
    if "with its ending" in hint:
        return _file_name(question)
    return named.pop(0) if named else None


def _topic(question: str) -> str:
    """What a piece of writing is to be about."""
    found = re.search(r"\b(?:about|on|of)\s+([^.?!\"“”]{2,80})", question, re.I)
    return found.group(1).strip() if found else ""


def _file_name(question: str) -> str | None:
    words = _WORDS.findall(_topic(question).lower())[:5]
    return f"{'-'.join(words)}.{_ending(question)}" if words else None


def _ending(question: str) -> str:
    asked = _stems(question)
    if asked & {"page", "html", "website"}:
        return "html"
    return "csv" if asked & {"table", "csv", "spreadsheet"} else "md"


def _draft(question: str) -> str | None:
    """A placeholder of the kind that was asked for, about what was asked."""
    topic = _topic(question)
    if not topic:
        return None
    title = topic[:1].upper() + topic[1:]
    sentence = f"The demo model cannot write, so this only stands in for a text about {topic}."
    match _ending(question):
        case "html":
            title, sentence = html.escape(title), html.escape(sentence)
            return (
                f"<!doctype html>\n<title>{title}</title>\n<style>body{{font:1rem/1.6 sans-serif;"
                f"max-width:36rem;margin:3rem auto;padding:0 1rem}}</style>\n<h1>{title}</h1>\n<p>{sentence}</p>\n"
            )
        case "csv":
            out = io.StringIO()
            rows = [("name", "note"), (title, sentence), ("Second row", "Change it with Edit")]
            csv.writer(out, lineterminator="\n").writerows(rows)
            return out.getvalue()
        case _:
            return (
                f"# {title}\n\n{sentence}\n\n- Change it with **Edit**; every save is a version.\n"
                "- Compare versions, restore one, or download the file.\n"
            )


def _named_texts(question: str) -> list[str]:
    """What follows a colon, or the words after "called", "named", "about": arguments without quotes."""
    found = re.findall(r"\b(?:called|named|titled|about)\s+([\w-]+(?:\s[\w-]+)?)", question, re.I)
    head, colon, tail = question.partition(": ")
    if colon and head:
        found.append(tail.strip())
    last = re.findall(r"\bnote\s+([\w-]+)\s*[.?!]?\s*$", question, re.I)
    return [text for text in [*found, *last] if text]


@cache
def _zones_by_city() -> dict[str, str]:
    by_city: dict[str, str] = {}
    for zone in sorted(zoneinfo.available_timezones()):
        area, _, city = zone.rpartition("/")
        if area and not area.startswith(("Etc", "posix", "right", "SystemV")):
            by_city.setdefault(city.replace("_", " ").lower(), zone)
    by_city.update({"utc": "UTC", "gmt": "UTC"})
    by_city.update({"san francisco": "America/Los_Angeles", "beijing": "Asia/Shanghai"})
    by_city.update(
        {"delhi": "Asia/Kolkata", "mumbai": "Asia/Kolkata", "boston": "America/New_York"}
    )
    by_city.update({"munich": "Europe/Berlin", "japan": "Asia/Tokyo", "germany": "Europe/Berlin"})
    return by_city


def _cities(question: str) -> list[str]:
    """Time zones of the cities in a question, in the order named."""
    text = f" {' '.join(re.findall(r'[a-z]+', question.lower()))} "
    found = [
        (text.index(f" {city} "), zone)
        for city, zone in _zones_by_city().items()
        if f" {city} " in text
    ]
    return list(dict.fromkeys(zone for _, zone in sorted(found)))


def _local_zone(hint: str, is_required: bool) -> str | None:
    match = re.search(r"use '([\w/+-]+)' as local", hint, re.I)
    if match:
        by_lower = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
        return by_lower.get(match.group(1).lower(), "UTC")
    return "UTC" if is_required else None


def _ask_for(function: Mapping[str, Any], missing: Sequence[str]) -> str:
    wanted = ", ".join(f"`{name}`" for name in missing)
    return (
        f"I would use `{_plain(function['name'])}` for this, but the question does not say {wanted}. "
        'Put the value in quotes, like "this".'
    )


def _speak_of(results: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(_speak_of_one(name, result) for name, result in results)


def _speak_of_one(name: str, result: str) -> str:
    plain = _plain(name)
    if result.startswith("Error: "):
        reason = result.removeprefix("Error: ")
        if reason.startswith("The user refused"):
            return f"All right, I did not run `{plain}`. {reason}"
        return f"`{plain}` did not work: {reason}"
    try:
        value = json.loads(result)
    except ValueError:
        return f"Here is what `{plain}` answered:\n\n{_quote(result)}"
    sentence = _time_sentence(value)
    if sentence:
        return sentence
    return f"Here is what `{plain}` answered:\n\n```json\n{_pretty(value)}\n```"


def _time_sentence(value: object) -> str | None:
    """A time server's answer as a sentence."""
    if not isinstance(value, Mapping):
        return None
    moment, zone = value.get("datetime"), value.get("timezone")
    if isinstance(moment, str) and isinstance(zone, str) and len(moment) >= 16:
        city = zone.rpartition("/")[2].replace("_", " ")
        day = f" on {value['day_of_week']}" if value.get("day_of_week") else ""
        return f"In **{city}** it is now **{moment[11:16]}**{day}, {moment[:10]} ({zone})."
    return None


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)[:4000]


def _quote(text: str) -> str:
    """Each line stays one: two spaces at its end break it."""
    return "  \n".join(f"> {line}" for line in text[:4000].splitlines())


def _plain(function_name: str) -> str:
    return function_name.replace("__", ".", 1)


def _small_talk(question: str, functions: Sequence[Mapping[str, Any]]) -> str:
    greeting = (
        "Hello! " if re.match(r"\s*(hi|hello|hey|good (morning|evening))\b", question, re.I) else ""
    )
    if not functions:
        return (
            f"{greeting}I am the **demo model**, not an AI, and this bud has no tools I could call. "
            "A workspace admin can connect an MCP server, or set up a real model."
        )
    names = "\n".join(f"- `{_plain(str(f['name']))}`: {_first_line(f)}" for f in functions[:12])
    return (
        f"{greeting}I am the **demo model**, not an AI: I match the words of a question to the tools "
        f"I am offered. Try a question that one of these could answer:\n\n{names}"
    )


def _first_line(function: Mapping[str, Any]) -> str:
    text = str(function.get("description", "")).partition("] ")[2] or str(
        function.get("description", "")
    )
    return text.strip().splitlines()[0][:120] if text.strip() else ""
