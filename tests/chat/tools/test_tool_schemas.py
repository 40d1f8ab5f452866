"""Schemas of tools as providers take them: one that they refuse would take all tools away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from chat.providers.base import CompletionRequest, ProviderSpec
from chat.providers.openai_compatible import OpenAICompatible
from chat.tools.schemas import as_parameters, plain_parameters
from tests.fakes.scripted_model import ScriptedModel
from workspaces import outbound

PLAIN = {
    *("type", "title", "description", "enum", "properties", "required", "items", "anyOf"),
    *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "nullable"),
}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "additionalProperties": False, "$schema": "x"},
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
        (
            {"type": "object", "properties": {"ids": {"type": "array"}, "o": {"type": "object"}}},
            {
                "type": "object",
                "properties": {
                    "ids": {"type": "array", "items": {}},
                    "o": {"type": "object", "properties": {}},
                },
            },
        ),
        (
            {"properties": {"a": {"type": ["string", "array"]}, "b": True}},
            {
                "type": "object",
                "properties": {"a": {"type": ["string", "array"], "items": {}}, "b": {}},
            },
        ),
    ],
    ids=["none", "without properties", "closed", "array without items", "several types"],
)
def test_what_openai_misses_is_there(schema: dict[str, Any], parameters: dict[str, Any]) -> None:
    """REL-976: an object has properties, and an array items."""
    assert as_parameters(schema) == parameters


def test_choices_at_the_top_become_one_object() -> None:
    """REL-976: as a server of 2026 attaches a file, by its content or by its address."""
    schema = {
        "type": "object",
        "properties": {"page": TEXT},
        "required": ["page"],
        "anyOf": [
            {"properties": {"name": TEXT, "content": TEXT}, "required": ["name", "content"]},
            {"properties": {"name": TEXT, "source_url": TEXT}, "required": ["name", "source_url"]},
        ],
    }
    assert as_parameters(schema) == {
        "type": "object",
        "properties": {"page": TEXT, "name": TEXT, "content": TEXT, "source_url": TEXT},
        "required": ["page", "name"],
    }


def test_a_top_that_refers_to_a_definition_is_that_definition() -> None:
    """REL-976: and so are the parts that are joined."""
    schema = {
        "$ref": "#/$defs/a~1b",
        "$defs": {"a/b": {"allOf": [{"$ref": "#/$defs/c"}]}, "c": {"properties": {"x": TEXT}}},
    }
    parameters = as_parameters(schema)
    assert (parameters["type"], parameters["properties"]) == ("object", {"x": TEXT})
    assert "$ref" not in parameters


def test_older_drafts_are_said_in_todays_words() -> None:
    """REL-976: Anthropic takes draft 2020-12 alone."""
    schema = {
        "properties": {
            "pair": {"type": "array", "items": [TEXT, {"type": "integer"}], "additionalItems": {}},
            "above": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "up_to": {"type": "number", "maximum": 9, "exclusiveMaximum": False},
            "wanted": {"type": "string", "required": True},
        }
    }
    parameters = as_parameters(schema)
    assert parameters["properties"] == {
        "pair": {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": {}},
        "above": {"type": "number", "exclusiveMinimum": 0},
        "up_to": {"type": "number", "maximum": 9},
        "wanted": TEXT,
    }
    Draft202012Validator.check_schema(parameters)


def test_a_plain_schema_says_the_same_without_what_few_know() -> None:
    """REL-977: references, several types, constants, choices, and numbers to choose from."""
    schema = as_parameters(
        {
            "properties": {
                "who": {"$ref": "#/$defs/person"},
                "when": {"type": ["string", "null"], "format": "date-time"},
                "size": {"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0},
                "kind": {"const": "note"},
                "maybe": {"anyOf": [TEXT, {"type": "null"}]},
                "either": {"oneOf": [TEXT, {"type": "integer"}]},
                "bare": {"description": "anything"},
            },
            "required": ["who", "gone"],
            "additionalProperties": False,
            "$defs": {"person": {"type": "object", "properties": {"name": TEXT}}},
        }
    )
    assert plain_parameters(schema) == {
        "type": "object",
        "properties": {
            "who": {"type": "object", "properties": {"name": TEXT}},
            "when": {"type": "string", "nullable": True},
            "size": {"type": "integer"},
            "kind": {"type": "string", "enum": ["note"]},
            "maybe": {"type": "string", "nullable": True},
            "either": {"anyOf": [TEXT, {"type": "integer"}]},
            "bare": {"type": "string", "description": "anything"},
        },
        "required": ["who"],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"properties": {"a": {"$ref": "#/properties/a"}}}}},
    ],
)
def test_a_schema_that_refers_to_itself_ends(schema: dict[str, Any]) -> None:
    """REL-977: whatever it refers to."""
    assert len(json.dumps(plain_parameters(as_parameters(schema)))) < 20_000


def test_a_plain_schema_shows_twice_how_a_part_goes_on_in_itself() -> None:
    """REL-1642: a tree of parts reaches the model as it is; plain, without its deeper levels."""
    node = {
        "type": "object",
        "description": "A folder",
        "properties": {"name": TEXT, "folders": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
    }
    schema = as_parameters({"$ref": "#/$defs/n", "$defs": {"n": node}})
    assert schema["properties"] == node["properties"]
    assert schema["$defs"] == {"n": node}
    last = {"type": "object", "description": "A folder", "properties": {}}
    for _ in range(3):
        inner = {"name": TEXT, "folders": {"type": "array", "items": last}}
        last = {"type": "object", "description": "A folder", "properties": inner}
    assert plain_parameters(schema) == last
    wide = {x: {"allOf": [{"$ref": "#/$defs/n"}]} for x in "abcdef"}
    schema = as_parameters({"$ref": "#/$defs/n", "$defs": {"n": {"properties": wide}}})
    assert len(json.dumps(plain_parameters(schema))) < 20_000


def test_references_that_double_each_other_end() -> None:
    """REL-977: a small schema may stand for a huge one."""
    parts = {
        f"p{n}": {"properties": {x: {"$ref": f"#/$defs/p{n + 1}"} for x in "ab"}} for n in range(18)
    }
    schema = as_parameters({"properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": parts})
    assert len(json.dumps(plain_parameters(schema))) < 300_000


def schemas() -> st.SearchStrategy[Any]:
    """Whatever a server may send: keywords in their place, and anything in it."""
    anything = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
    keywords = st.sampled_from(
        [
            *(
                "type",
                "properties",
                "items",
                "anyOf",
                "oneOf",
                "allOf",
                "required",
                "enum",
                "const",
            ),
            *("$ref", "$defs", "not", "if", "additionalProperties", "exclusiveMinimum", "minimum"),
        ]
    )
    types = st.sampled_from(
        [
            *("string", "object", "array", "null", "integer"),
            *("#", "#/properties/a", "#/$defs/a", "elsewhere"),
        ]
    )
    return st.recursive(
        anything | types,
        lambda inner: (
            st.dictionaries(keywords | st.text(max_size=2), inner, max_size=4)
            | st.lists(inner | types, max_size=3)
        ),
        max_leaves=20,
    )


@given(schemas())
def test_any_schema_becomes_one_that_is_taken(schema: Any) -> None:
    """REL-976, REL-977: an object on the top without combinators; plain parts hold plain words alone."""
    parameters = as_parameters(schema)
    assert parameters["type"] == "object"
    assert isinstance(parameters["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(parameters)
    assert as_parameters(parameters) == parameters
    for part in parts_of(plain_parameters(parameters)):
        assert set(part) <= PLAIN
        assert not isinstance(part.get("type"), list)


def parts_of(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from parts_of(inner)
    for inner in [schema["items"]] if "items" in schema else schema.get("anyOf", ()):
        yield from parts_of(inner)


@pytest.mark.parametrize(
    "words",
    [
        "Unknown name 'const' at 'tools[0].function_declarations[9].parameters.properties[1]': Cannot find field.",
        "tools.12.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.",
        "Invalid schema for function 'f': In context=('properties', 'x'), reference can only point to definitions.",
    ],
    ids=["Gemini", "Anthropic", "OpenAI"],
)
async def test_a_provider_that_refuses_a_schema_gets_plain_ones(words: str) -> None:
    """REL-977: the question is asked again at once, and the next one so from the start."""
    schema = as_parameters({"properties": {"x": {"const": "a"}}})
    tool = json.dumps({"type": "function", "function": {"name": "f", "parameters": schema}})
    request = CompletionRequest(
        model="m", messages=[{"role": "user", "content": "?"}], tools=[tool]
    )
    model = ScriptedModel()
    try:
        model.fail(400, json.dumps([{"error": {"code": 400, "message": words}}]).encode())
        model.say("first")
        model.say("second")
        spec = ProviderSpec(name="t", base_url=model.base_url, model="m")
        async with outbound.client() as http:
            client = OpenAICompatible(spec, http)
            for _ in range(2):
                _ = [piece async for piece in client.stream(request)]
        sent = [
            one["tools"][0]["function"]["parameters"]["properties"]["x"] for one in model.requests
        ]
        plain = {"type": "string", "enum": ["a"]}
        assert sent == [{"const": "a"}, plain, plain]
    finally:
        model.stop()


def test_a_schema_hides_nothing_from_people() -> None:
    """SEC-772: what a parameter is called and said to be, what it may be, and what is referred to."""
    sly = "a\U000e0041\u202e\x1b[31m"
    parameters = as_parameters(
        {
            "properties": {
                f"{sly}b": {"description": sly, "enum": [sly]},
                "c": {"$ref": "#/$defs/d"},
            },
            "required": [f"{sly}b"],
            "$defs": {"d": {"type": "string", "title": sly}},
        }
    )
    assert parameters["properties"]["ab"] == {"description": "a", "enum": ["a"]}
    assert parameters["required"] == ["ab"]
    assert plain_parameters(parameters)["properties"]["c"] == {"type": "string", "title": "a"}
