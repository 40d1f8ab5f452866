import { describe, expect, it } from "vitest";
import { asJson, flatFields, parseArguments, sameJson, typedValues } from "../../../src/chat/calls/arguments";
import { badgesOf } from "../../../src/chat/calls/badges";
import { contentOf, formProblems, type Values } from "../../../src/forms/schema";
import { showHidden } from "../../../src/ui/hidden";
import type { JsonObject } from "../../../src/wire";

const SCHEMA = {
  type: "object",
  required: ["city", "days"],
  properties: {
    city: { type: "string", title: "City" },
    days: { type: "integer" },
    unit: { enum: ["C", "F"] },
    detailed: { type: "boolean" },
  },
};

describe("flatFields", () => {
  it("makes fields of a flat schema", () => {
    expect(flatFields(SCHEMA, { city: "Rome", days: 2 })?.map((f) => [f.title, f.kind, f.required])).toEqual([
      ["City", "text", true],
      ["days", "integer", true],
      ["unit", "one", false],
      ["detailed", "boolean", false],
    ]);
  });
  it("leaves anything nested, unknown or misfitting to the JSON editor", () => {
    expect(flatFields(null, {})).toBeNull();
    expect(flatFields({ properties: { a: { type: "array" } } }, {})).toBeNull();
    expect(flatFields(SCHEMA, { extra: 1 })).toBeNull();
    expect(flatFields(SCHEMA, { days: "two" })).toBeNull();
  });
});

describe("editing", () => {
  const fields = flatFields(SCHEMA, {}) ?? [];
  const edited = (args: JsonObject, change: Values) =>
    contentOf(fields, { ...typedValues(fields, args), ...change });
  const problems = (args: JsonObject) =>
    formProblems(fields, typedValues(fields, args), { allowsEmpty: true });
  it("keeps types, leaves out what is not there, and drops emptied optional fields", () => {
    expect(edited({ days: 1 }, { days: "3" })).toEqual({ days: 3 });
    expect(edited({ city: "", detailed: false }, {})).toEqual({ city: "", detailed: false });
    expect(edited({ unit: "C" }, { unit: "" })).toEqual({});
  });
  it("says what is wrong", () => {
    expect(problems({ city: "Rome", days: 2.5 })).toHaveProperty("days");
    expect(problems({ days: 2 })).toEqual({ city: "This field is required." });
    expect(problems({ city: "", days: 2, unit: "C" })).toEqual({});
  });
  it("reads JSON objects only", () => {
    expect(parseArguments('{"a": 1}')).toEqual({ value: { a: 1 } });
    expect(parseArguments("[1]")).toHaveProperty("problem");
    expect(parseArguments("{")).toHaveProperty("problem");
  });
  it("compares values, not spelling", () => {
    expect(sameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
    expect(sameJson({ a: 1 }, { a: "1" })).toBe(false);
    expect(sameJson([], {})).toBe(false);
  });
});

describe("what is shown of a tool", () => {
  it("names its effects, and doubt where nothing is said", () => {
    const labels = (read_only: boolean | null, destructive: boolean | null) =>
      badgesOf({ read_only, destructive, idempotent: null, open_world: null }).map((b) => b.label);
    expect(labels(true, true)).toEqual(["Read-only"]);
    expect(labels(false, true)).toEqual(["Destructive"]);
    expect(labels(false, false)).toEqual(["Changes data"]);
    expect(labels(null, null)).toEqual(["Effects unknown"]);
  });
  it("shows JSON as JSON and other text as text", () => {
    expect(asJson(' {"a": 1}')).toEqual({ a: 1 });
    expect(asJson("12")).toBeUndefined();
    expect(asJson("{broken")).toBeUndefined();
  });
});

describe("hidden characters", () => {
  it("SEC-67: are written out, and honest text stays as it is", () => {
    expect(showHidden("a\u202eb\u200bc\u{e0041}\u001b[31m")).toBe("a‹U+202E›b‹U+200B›c‹U+E0041›‹U+001B›[31m");
    for (const text of ["plain\n\ttext", "Grüße 🌱 مرحبا", "👩‍🌾"]) expect(showHidden(text)).toBe(text);
  });
});
