import { describe, expect, it } from "vitest";
import {
  ALL_FORMATS,
  contentOf,
  type FormField,
  formFields,
  formProblems,
  initialValues,
  type Values,
} from "../../src/forms/schema";
import type { JsonObject } from "../../src/wire";

const SCHEMA: JsonObject = {
  type: "object",
  required: ["name", "mail", "colours"],
  properties: {
    name: { type: "string", title: "Your name", minLength: 2 },
    mail: { type: "string", format: "email" },
    site: { type: "string", format: "uri" },
    born: { type: "string", format: "date" },
    age: { type: "integer", minimum: 18, maximum: 99, default: 30 },
    ratio: { type: "number" },
    news: { type: "boolean", default: true },
    size: { type: "string", enum: ["s", "m"], enumNames: ["Small", "Medium"] },
    unit: { type: "string", oneOf: [{ const: "kg", title: "Kilogram" }, { const: "g" }] },
    colours: {
      type: "array",
      minItems: 1,
      maxItems: 2,
      items: {
        anyOf: [
          { const: "r", title: "Red" },
          { const: "b", title: "Blue" },
        ],
      },
    },
    password: { type: "string" },
  },
};

describe("a server's form", () => {
  const fields = formFields(SCHEMA, { formats: ALL_FORMATS, startsOff: true });
  const field = (name: string) => {
    const found = fields.find((f) => f.name === name);
    if (!found) throw new Error(name);
    return found;
  };

  it("knows every kind of field that the protocol allows", () => {
    expect(fields.map((f) => f.kind)).toEqual([
      "text",
      "email",
      "uri",
      "date",
      "integer",
      "number",
      "boolean",
      "one",
      "one",
      "many",
      "text",
    ]);
    expect(field("name")).toMatchObject({ title: "Your name", required: true, min: 2 });
    expect(field("size").choices).toEqual([
      { value: "s", title: "Small" },
      { value: "m", title: "Medium" },
    ]);
    expect(field("unit").choices).toEqual([
      { value: "kg", title: "Kilogram" },
      { value: "g", title: "g" },
    ]);
    expect(field("colours").choices.map((c) => c.title)).toEqual(["Red", "Blue"]);
  });

  it("starts with the defaults", () => {
    expect(initialValues(fields)).toMatchObject({ age: "30", news: true, name: "", colours: [] });
  });

  it("SEC-69: marks what looks like a secret", () => {
    expect(field("password").isSecret).toBe(true);
    expect(field("name").isSecret).toBe(false);
  });

  it("says what is missing or does not fit", () => {
    const values = { ...initialValues(fields), name: "A", mail: "nobody", age: "7", site: "no", ratio: "x" };
    const problems = formProblems(fields, values);
    expect(Object.keys(problems).sort()).toEqual(["age", "colours", "mail", "name", "ratio", "site"]);
    const good = { ...values, name: "Ada", mail: "a@b.c", age: "40", site: "", ratio: "", colours: ["r"] };
    expect(formProblems(fields, good)).toEqual({});
    expect(formProblems(fields, { ...good, colours: ["r", "b", "x"] }).colours).toBe("Pick at most 2.");
  });

  it("gives typed content and leaves out what was left empty", () => {
    const values = { ...initialValues(fields), name: "Ada", mail: "a@b.c", colours: ["b"], ratio: "1.5" };
    expect(contentOf(fields, values)).toEqual({
      name: "Ada",
      mail: "a@b.c",
      age: 30,
      ratio: 1.5,
      news: true,
      colours: ["b"],
    });
  });
});

describe("a form of any schema", () => {
  const schema: JsonObject = {
    required: ["place", "note", "level"],
    properties: {
      place: {
        type: "object",
        required: ["city"],
        properties: { city: { type: "string" }, lit: { type: "boolean" } },
      },
      stops: { type: "array", items: { type: "object", properties: { day: { type: "integer" } } } },
      level: { enum: [1, 2, null] },
      note: { type: "string", format: "date-time" },
      extra: { type: ["object", "null"] },
    },
  };
  const fields = formFields(schema, { depth: 4 });
  const start = initialValues(fields);

  it("holds objects, lists and any JSON, and formats only where they are wanted", () => {
    expect(fields.map((f) => f.kind)).toEqual(["object", "array", "one", "text", "json"]);
    expect(fields[0]?.fields.map((f) => f.kind)).toEqual(["text", "boolean"]);
    expect(formFields(schema).map((f) => f.kind)).toEqual(["json", "json", "one", "text", "json"]);
  });
  it("leaves out what nobody has said, and sends empty what is required", () => {
    expect(contentOf(fields, start)).toEqual({ place: { city: "" }, note: "" });
  });
  it("gives values their types, and leaves what does not fit to the server", () => {
    const values: Values = {
      ...start,
      place: { city: "Rome", lit: false },
      stops: [{ day: "2" }, { day: "soon" }, { day: "" }],
      level: "2",
      extra: '{"a": [1]}',
    };
    expect(contentOf(fields, values)).toEqual({
      place: { city: "Rome", lit: false },
      stops: [{ day: 2 }, { day: "soon" }, {}],
      level: 2,
      note: "",
      extra: { a: [1] },
    });
    expect(contentOf(fields, { ...values, level: "null", extra: "{" })).toMatchObject({
      level: null,
      extra: "{",
    });
  });
});

describe("REL-1643: a schema whose parts refer to others, or to themselves", () => {
  const tree: JsonObject = {
    $ref: "#/$defs/folder",
    $defs: {
      folder: {
        type: "object",
        required: ["name"],
        properties: {
          name: { $ref: "#/$defs/na~1me", title: "Name" },
          colour: { type: "array", items: { $ref: "#/$defs/colour" } },
          folders: { type: "array", items: { $ref: "#/$defs/folder" } },
        },
      },
      "na/me": { type: "string", minLength: 2 },
      colour: { enum: ["red", "blue"] },
    },
  };

  it("has the fields that they refer to, and JSON where it would never end", () => {
    const fields = formFields(tree, { depth: 3 });
    expect(fields.map((f) => [f.title, f.kind, f.required])).toEqual([
      ["Name", "text", true],
      ["colour", "many", false],
      ["folders", "array", false],
    ]);
    expect(fields[0]?.min).toBe(2);
    const inner = fields[2]?.item;
    expect(inner?.kind).toBe("object");
    expect(inner?.fields.map((f) => f.kind)).toEqual(["text", "many", "json"]);
  });
  it("has a bounded number of fields", () => {
    const names = Array.from({ length: 30 }, (_, n) => `p${n}`);
    const wide: JsonObject = {
      properties: Object.fromEntries(names.map((name) => [name, { type: "object", $ref: "#" }])),
    };
    const count = (fields: FormField[]): number => fields.reduce((sum, f) => sum + 1 + count(f.fields), 0);
    expect(count(formFields(wide, { depth: 10 }))).toBeLessThan(700);
  });
  it("ends where a reference means nothing, or itself", () => {
    for (const reference of ["#/a", "#/$defs/none", "other.json", "#%", "#/properties/a"])
      expect(formFields({ properties: { a: { $ref: reference } } }).map((f) => f.kind)).toEqual(["json"]);
  });
});
