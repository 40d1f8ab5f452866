import { describe, expect, it } from "vitest";
import {
  canOpen,
  contentOf,
  formFields,
  formProblems,
  initialValues,
  markHost,
  sampledMessages,
} from "../src/chat/elicitation";
import type { JsonObject } from "../src/wire";

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
  const fields = formFields(SCHEMA);
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

describe("a server's link", () => {
  it("SEC-69: has its host marked, also where the host's name stands elsewhere too", () => {
    expect(markHost("https://bank.example/bank.example", "bank.example")).toEqual([
      "https://",
      "bank.example",
      "/bank.example",
    ]);
  });
  it("SEC-69: opens for https alone", () => {
    expect(canOpen("https://a.example/x")).toBe(true);
    for (const bad of ["http://a.example", "javascript:alert(1)", "https://me@a.example", "nonsense"]) {
      expect(canOpen(bad), bad).toBe(false);
    }
  });
});

it("shows what a server wants to ask the model as text by role", () => {
  const params: JsonObject = {
    messages: [
      { role: "user", content: { type: "text", text: "Sum this up" } },
      {
        role: "assistant",
        content: [
          { type: "text", text: "ok" },
          { type: "image", data: "x" },
        ],
      },
    ],
  };
  expect(sampledMessages(params)).toEqual([
    { role: "user", text: "Sum this up" },
    { role: "assistant", text: "ok\n[image]" },
  ]);
});
