"""What servers say their tools are: bounded, self-contained, hashed."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest

from mcp_servers.client.definitions import definition_hash, read_definition
from mcp_servers.client.errors import InvalidArguments
from mcp_servers.client.schema_work import UnusableSchema
from mcp_servers.client.schemas import check_arguments, check_schema, fits
from tests.fakes.mcp_server import raw_tool


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers to the next one twice."""
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = schema_of(x=schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("text", "not a JSON object"),
        (None, "not a JSON object"),
        ([], "not a JSON object"),
        (schema_of(a={"$ref": "https://evil.example/schema.json"}), "another document"),
        (schema_of(a={"$ref": "file:///etc/passwd"}), "another document"),
        (schema_of(a={"$ref": "other.json#/x"}), "another document"),
        (schema_of(a={"$dynamicRef": "#node"}), "$dynamicRef"),
        (schema_of(a={"$recursiveRef": "#"}), "$recursiveRef"),
        ({"$ref": "#"}, "refers to itself without an end"),
        ({"anyOf": [{"$ref": "#"}, {"type": "object"}]}, "refers to itself without an end"),
        (
            {"$defs": {"n": {"not": {"$ref": "#/$defs/n"}}}, **schema_of(a={"$ref": "#/$defs/n"})},
            "refers to itself without an end",
        ),
        (schema_of(a={"$ref": "#"}, b={"$ref": "#/properties"}), "not valid JSON Schema"),
        (schema_of(a={"$ref": "#/$defs/missing"}), "not valid JSON Schema"),
        (doubling(40), "takes too long to check"),
        ({"properties": {"$defs": doubling(40)["$defs"], "a": doubling(40)}}, "not valid"),
        ({**doubling(40), **schema_of(a={"$ref": "#"})}, "takes too long to check"),
        (
            {"default": {"n": {"allOf": [{"$ref": "#/default/n"}] * 2}}, "$ref": "#/default/n"},
            "not valid JSON Schema",
        ),
        (
            schema_of(a={"$id": "https://example.org/b", "items": {"$ref": "#/properties/a"}}),
            "another document",
        ),
        (schema_of(a={"type": "string", "description": "x" * 70_000}), "69 KiB, more than 64"),
        (schema_of(**{f"p{n}": {"type": "string"} for n in range(1001)}), "more than 1000 parts"),
        (nested(30), "nested deeper"),
        ({"$schema": "https://example.org/my-dialect", "type": "object"}, "unknown dialect"),
        (schema_of(a={"type": "nonsense"}), "not valid JSON Schema"),
        (schema_of(a={"pattern": "(?=x)(?!y)z"}), "pattern"),
        (schema_of(a={"pattern": "(a)\\1"}), "pattern"),
        (schema_of(a={"pattern": "(((a{99}){99}){99}){99}"}), "pattern"),
        (schema_of(a={"not": {"pattern": "(?<=a)b"}}), "pattern"),
        ({"type": "object", "patternProperties": {"(?=a)": {"type": "string"}}}, "pattern"),
        (schema_of(a={"pattern": "["}), "pattern"),
        (schema_of(a={"const": "\x00"}), "cannot be stored"),
        (schema_of(a={"const": float("inf")}), "cannot be stored"),
    ],
)
def test_a_schema_that_is_not_used(schema: Any, words: str) -> None:
    """SEC-74, SEC-75: no reference outside, bounded, known dialect, patterns that run in linear time."""
    with pytest.raises(UnusableSchema) as caught:
        check_schema(schema, what="input")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        schema_of(a={"type": "string", "pattern": "^(a+)+$"}),
        {"$schema": "http://json-schema.org/draft-07/schema#", **schema_of(a={"type": "string"})},
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema_of(a={"type": "string"}),
        },
        {
            "$defs": {"name": {"type": "string"}},
            **schema_of(a={"$ref": "#/$defs/name"}, b={"$ref": "#/$defs/name"}),
        },
        {"$defs": {"default": {"$anchor": "d"}}, **schema_of(a={"$ref": "#d"})},
        schema_of(a={"items": {"type": "string"}}, b={"$ref": "#/properties/a/items"}),
        doubling(12),
        schema_of(**{"$ref": {"type": "string"}}),
        schema_of(a={"default": {"$ref": "https://example.org/"}}),
        nested(8),
        schema_of(a={"$ref": "#"}),
        {"$anchor": "n", **schema_of(a={"allOf": [{"$ref": "#n"}] * 2})},
        {"$defs": {"a b": schema_of(x={"$ref": "#/$defs/a%20b"})}, "$ref": "#/$defs/a%20b"},
        {
            "$defs": {"n": schema_of(next={"$ref": "#/$defs/n"})},
            **schema_of(a={"$ref": "#/$defs/n"}),
        },
        schema_of(a={"properties": {}, "items": {"$ref": "#/properties/a"}}),
    ],
)
def test_an_ordinary_schema_is_used(schema: dict[str, Any]) -> None:
    """SEC-74: the bounds leave ordinary tools alone."""
    check_schema(schema, what="input")


def test_a_hostile_pattern_is_decided_at_once() -> None:
    """SEC-75: `^(a+)+$` over forty letters in under a second of the processor, wherever it stands."""
    hostile = {"type": "string", "pattern": "^(a+)+$"}
    text = "a" * 40 + "!"
    for schema, value in [
        (schema_of(a=hostile), {"a": text}),
        (schema_of(a={"not": {"not": hostile}}), {"a": text}),
        ({"type": "object", "patternProperties": {"^(a+)+$": False}, "required": ["b"]}, {text: 1}),
    ]:
        started = time.process_time()
        with pytest.raises(InvalidArguments):
            check_arguments(schema, value)
        assert not fits(schema, value)
        assert time.process_time() - started < 1


@pytest.mark.parametrize("keyword", ["properties", "dependentSchemas"])
def test_names_that_look_like_keywords_hide_no_work(keyword: str) -> None:
    """SEC-422: what stands under a name is looked at, whatever the name is."""
    hidden = doubling(40)
    with pytest.raises(UnusableSchema, match="takes too long"):
        check_schema({"$defs": hidden.pop("$defs"), keyword: {"$defs": hidden}}, what="input")


def test_no_check_takes_long() -> None:
    """SEC-422: neither by a schema that was stored before it was bounded, nor by the number of values."""
    of_each = {"$defs": doubling(12)["$defs"], "items": {"$ref": "#/$defs/d0"}}
    cases: list[tuple[dict[str, Any], Any, str]] = [
        (doubling(40), {}, "This tool cannot be used, because its schema takes too long"),
        (of_each, [{}] * 100_000, "too long to check. Send less at once"),
    ]
    started = time.process_time()
    for schema, value, words in cases:
        assert not fits(schema, value)
        with pytest.raises(InvalidArguments, match=words):
            check_arguments(schema, value)
    assert time.process_time() - started < 1


EXPRESSION: dict[str, Any] = {
    "anyOf": [
        {"type": ["string", "number"]},
        {
            **schema_of(op={"enum": ["and", "or"]}, of={"items": {"$ref": "#/$defs/e"}}),
            "required": ["op", "of"],
            "additionalProperties": False,
        },
        {"type": "array", "prefixItems": [{"const": "not"}, {"$ref": "#/$defs/e"}]},
        {
            **schema_of(left={"$ref": "#/$defs/e"}, right={"$ref": "#/$defs/e"}),
            "required": ["left", "right"],
        },
    ]
}


def test_a_schema_that_refers_to_itself_is_checked() -> None:
    """REL-1641: a tree of parts is used; what does not fit is found at any level."""
    schema = {"$defs": {"e": EXPRESSION}, **schema_of(where={"$ref": "#/$defs/e"})}
    check_schema(schema, what="input")
    fine: Any = {"left": 1, "right": ["not", "x"]}
    for _ in range(10):
        fine = {"op": "and", "of": [fine, "y", {"left": "a", "right": "b"}]}
    check_arguments(schema, {"where": fine})
    assert fits(schema, {"where": fine})
    wrong: Any = {"op": "nor", "of": []}
    for _ in range(5):
        wrong = {"op": "or", "of": [wrong]}
    assert not fits(schema, {"where": wrong})
    with pytest.raises(InvalidArguments, match="where"):
        check_arguments(schema, {"where": wrong})


def chain(levels: int, key: str = "a", end: Any = 3) -> Any:
    value = end
    for _ in range(levels):
        value = {key: value} if key else [value]
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (schema_of(a={"allOf": [{"$ref": "#"}, {"$ref": "#"}]}), chain(60)),
        (schema_of(a={"unevaluatedProperties": False, "$ref": "#"}), chain(60)),
        ({"additionalProperties": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]}}, chain(60)),
        (
            {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}},
            chain(60),
        ),
        ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, chain(60, "")),
        (schema_of(a={"$ref": "#"}), chain(200)),
        (
            {"$defs": {"v": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/v"}}]}}}
            | schema_of(a={"$ref": "#/$defs/v"}),
            {"a": chain(60, "", [1] * 50_000)},
        ),
    ],
)
def test_what_refers_to_itself_is_checked_quickly(schema: dict[str, Any], value: Any) -> None:
    """SEC-751: neither doubling at each level, nor a deep and wide value, holds the process up."""
    check_schema(schema, what="input")
    started = time.process_time()
    assert not fits(schema, value)
    with pytest.raises(InvalidArguments, match=r"too long to check|nested deeper"):
        check_arguments(schema, value)
    assert time.process_time() - started < 1


def test_faults_are_told_with_their_place() -> None:
    """Models and people read where the arguments do not fit."""
    schema = {
        **schema_of(a={"type": "integer"}, b={"type": "array", "items": {"enum": ["x"]}}),
        "required": ["c"],
    }
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(schema, {"a": "1", "b": ["y"]})
    assert '"c" is a required property' in caught.value.message
    assert "a: " in caught.value.message
    assert "b/0: " in caught.value.message
    assert len(caught.value.message) < 2500


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "echo "},
        {"description": "ech\u200bo"},
        {"title": "Echo"},
        {"name": "echo2"},
        {"annotations": {"readOnlyHint": False}},
        {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
        {"_meta": {"x": 1}},
        {"outputSchema": {"type": "object"}},
        {"inputSchema": schema_of(text={"type": "string", "default": "x"})},
    ],
)
def test_any_change_changes_the_hash(changed: dict[str, Any]) -> None:
    """SEC-57: one character, an invisible one, a nested default, a hint."""
    assert definition_hash(raw_tool("echo")) != definition_hash(raw_tool("echo", **changed))


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    """SEC-57: except key order, and null for absent."""
    raw = raw_tool("echo", inputSchema={"type": "object", "properties": {"a": {}, "b": {}}})
    turned = dict(reversed(list(copy.deepcopy(raw).items())))
    turned["inputSchema"] = {"properties": {"b": {}, "a": {}}, "type": "object"}
    assert definition_hash(raw) == definition_hash(turned)
    assert definition_hash(raw) == definition_hash({**raw, "title": None, "outputSchema": None})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://evil.example/"},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1500)}},
        [],
    ],
)
def test_an_output_schema_that_cannot_be_used_takes_no_tool_away(schema: object) -> None:
    """REL-2032: results are not checked against it; that it changes is still a changed definition."""
    found = read_definition(raw_tool("find", outputSchema=schema))
    plain = read_definition(raw_tool("find"))
    assert found is not None
    assert plain is not None
    assert (found.problem, found.output_schema) == ("", None)
    assert found.hash != plain.hash


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (
            {"type": "object", "description": "x" * 75_000},
            "its output schema has 74 KiB, more than 64 KiB.",
        ),
        ({"$ref": "https://evil.example/"}, "its output schema refers to another document."),
        ([], "its output schema is not a JSON object."),
        (None, ""),
        ({"type": "object"}, ""),
    ],
)
def test_a_definition_says_why_results_go_unchecked(schema: object, words: str) -> None:
    """REL-2091."""
    found = read_definition(raw_tool("find", outputSchema=schema))
    assert found is not None
    assert found.output_problem == words


def test_a_schema_is_measured_in_one_way() -> None:
    """REL-2091: in the form in which it is hashed and checked; blanks and escapes of another form do not count."""
    schema = {"type": "object", "description": "ü" * 30_000}
    found = read_definition(raw_tool("find", inputSchema=schema, outputSchema=schema))
    assert found is not None
    assert (found.problem, found.output_problem) == ("", "")
    assert found.input_schema == found.output_schema == schema


@pytest.mark.parametrize(
    "raw",
    [None, "x", 5, [], {}, {"name": ""}, {"name": 5}, {"name": "a\x00b"}, {"name": "x" * 300}],
)
def test_an_entry_without_a_usable_name_is_skipped(raw: object) -> None:
    """Nobody could ever call it."""
    assert read_definition(raw) is None


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"inputSchema": None}, "input schema"),
        ({"inputSchema": {"type": "string"}}, "does not describe an object"),
        ({"description": "x" * 20_000}, "description"),
        ({"description": 5}, "description"),
        ({"execution": {"taskSupport": "required"}}, "task"),
        ({"inputSchema": schema_of(a={"type": "string", "x-mcp-header": "A\r\nX: y"})}, "header"),
        (
            {
                "inputSchema": schema_of(
                    a={"type": "string", "x-mcp-header": "A"},
                    b={"type": "string", "x-mcp-header": "a"},
                )
            },
            "header",
        ),
        (
            {
                "inputSchema": schema_of(
                    a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}
                )
            },
            "header",
        ),
        ({"annotations": {"title": "\x00"}}, "annotations"),
    ],
)
def test_a_bad_tool_is_kept_with_its_reason(parts: dict[str, Any], words: str) -> None:
    """SEC-36, SEC-74: excluded with a reason, storable, never an exception."""
    definition = read_definition(raw_tool("odd", **parts))
    assert definition is not None
    assert words in definition.problem
    assert len(definition.hash) == 64
