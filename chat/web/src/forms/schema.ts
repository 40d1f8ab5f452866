/** A JSON Schema as fields that a person fills in, what is wrong with what they typed, and back to JSON. Pure. */
import { momentOf, typed } from "../formats";
import t from "../texts/questions";
import type { Json, JsonObject } from "../wire";

export interface Choice {
  value: Json;
  title: string;
}

type FieldKind =
  | "text"
  | "email"
  | "uri"
  | "date"
  | "date-time"
  | "integer"
  | "number"
  | "boolean"
  | "one"
  | "many"
  | "object"
  | "array"
  | "json";

export interface FormField {
  name: string;
  title: string;
  description: string;
  kind: FieldKind;
  required: boolean;
  choices: Choice[];
  /** Bounds of a number, of a text's length or of how many are picked, whichever the kind has. */
  min: number | null;
  max: number | null;
  isSecret: boolean;
  initial: Value;
  /** Of an object. */
  fields: FormField[];
  /** Of an array. */
  item: FormField | null;
}

/** What stands in a field: typed text, a choice's key, a switch; undefined: nothing was said. */
export type Value = string | boolean | undefined | Value[] | Values;
export type Values = { [name: string]: Value };

interface Reading {
  /** Formats of text that have a field of their own; the others are plain text. */
  formats?: ReadonlySet<string>;
  /** How deep objects and lists are drawn; what lies deeper is written as JSON. */
  depth?: number;
  /** Whether a switch without a default is off, instead of unsaid. */
  startsOff?: boolean;
}

const NO_FORMATS: ReadonlySet<string> = new Set();
export const ALL_FORMATS: ReadonlySet<string> = new Set(["email", "uri", "date", "date-time"]);

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const numberOf = (value: unknown): number | null => (typeof value === "number" ? value : null);
/** Under which name a choice stands in a field. */
export const keyOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
const SECRET = /pass(word|phrase)|secret|token|api.?key|credential|\bpin\b|cvv|card.?number/i;

/** How many references lead to each other before a part is taken as it is. */
const MOST_HOPS = 20;
/** Fields of one form. Parts that refer to themselves would make any number; what is left is written as JSON. */
const MOST_FIELDS = 300;

/** A part of a schema with what it refers to in its place; what it says besides comes first. */
export function resolved(part: JsonObject, document: JsonObject): JsonObject {
  let found = part;
  for (let hop = 0; hop < MOST_HOPS && typeof found.$ref === "string"; hop++) {
    const { $ref: reference, ...own } = found;
    found = { ...partAt(String(reference), document), ...own };
  }
  return found;
}

/** The part that a JSON pointer means; empty where it means none. */
function partAt(reference: string, document: JsonObject): JsonObject {
  if (!/^#(\/|$)/.test(reference)) return {};
  let found: Json | undefined = document;
  for (const step of reference.split("/").slice(1)) {
    const key = unescaped(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) found = found[Number(key)];
    else found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return isObject(found) ? found : {};
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The fields of an object's schema. */
export function formFields(schema: JsonObject, reading: Reading = {}): FormField[] {
  return fieldsOf(schema, { ...reading, document: schema, room: { left: MOST_FIELDS } });
}

/** As a form is being made: the whole schema, and how many more fields it may have. */
interface Making extends Reading {
  document: JsonObject;
  room: { left: number };
}

function fieldsOf(part: JsonObject, reading: Making): FormField[] {
  const schema = resolved(part, reading.document);
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).flatMap(([name, property]) =>
    isObject(property) ? [fieldOf(name, property, required.includes(name), reading)] : [],
  );
}

function fieldOf(name: string, part: JsonObject, required: boolean, reading: Making): FormField {
  const { formats = NO_FORMATS, depth = 1, document, room } = reading;
  const property = resolved(part, document);
  const items = isObject(property.items) ? resolved(property.items, document) : {};
  room.left -= 1;
  const whole = isObject(property.items) ? { ...property, items } : property;
  const kind = kindOf(whole, formats, room.left > 0 ? depth : 1);
  const isNumber = kind === "integer" || kind === "number";
  const inner = { ...reading, depth: depth - 1 };
  const initial = initialOf(kind, property.default);
  return {
    name,
    title: textOf(property.title) || name,
    description: textOf(property.description),
    kind,
    required,
    choices: kind === "many" ? choicesOf(items) : kind === "one" ? choicesOf(property) : [],
    min: numberOf(isNumber ? property.minimum : kind === "many" ? property.minItems : property.minLength),
    max: numberOf(isNumber ? property.maximum : kind === "many" ? property.maxItems : property.maxLength),
    isSecret: SECRET.test(`${name} ${textOf(property.title)}`) || property.format === "password",
    initial: initial === undefined && reading.startsOff ? false : initial,
    fields: kind === "object" ? fieldsOf(property, inner) : [],
    item: kind === "array" ? fieldOf(textOf(property.title) || name, items, true, inner) : null,
  };
}

function kindOf(property: JsonObject, formats: ReadonlySet<string>, depth: number): FieldKind {
  if (choicesOf(property).length > 0) return "one";
  const { type, items, format } = property;
  const name = Array.isArray(type) ? type.find((one) => one !== "null") : type;
  switch (name) {
    case "array":
      if (isObject(items) && choicesOf(items).length > 0) return "many";
      return isObject(items) && depth > 1 ? "array" : "json";
    case "object":
      return isObject(property.properties) && depth > 1 ? "object" : "json";
    case "boolean":
    case "integer":
    case "number":
      return name;
    case "string":
      return typeof format === "string" && formats.has(format) ? (format as FieldKind) : "text";
    default:
      return "json";
  }
}

/** Plain values, values with a list of names beside them, or `{const, title}` pairs. */
function choicesOf(property: JsonObject): Choice[] {
  const pairs = property.oneOf ?? property.anyOf;
  if (Array.isArray(pairs)) {
    return pairs.flatMap((pair) =>
      isObject(pair) && pair.const !== undefined
        ? [{ value: pair.const, title: textOf(pair.title) || keyOf(pair.const) }]
        : [],
    );
  }
  const values = Array.isArray(property.enum) ? property.enum : [];
  const names = Array.isArray(property.enumNames) ? property.enumNames : [];
  return values.map((value, i) => ({ value, title: textOf(names[i]) || keyOf(value) }));
}

function initialOf(kind: FieldKind, value: Json | undefined): Value {
  switch (kind) {
    case "boolean":
      return typeof value === "boolean" ? value : undefined;
    case "many":
      return Array.isArray(value) ? value.map(keyOf) : [];
    case "array":
      return [];
    case "object":
      return {};
    case "json":
      return value === undefined ? "" : JSON.stringify(value, null, 2);
    case "date-time":
      return localMoment(textOf(value));
    default:
      return value === undefined || value === null ? "" : keyOf(value);
  }
}

/** An ISO moment as a field for date and time holds it. */
function localMoment(iso: string): string {
  return Number.isNaN(Date.parse(iso)) ? "" : typed(iso);
}

export function initialValues(fields: readonly FormField[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, startOf(field)]));
}

/** What a field holds before anybody has typed. */
export function startOf(field: FormField): Value {
  return field.kind === "object" ? initialValues(field.fields) : field.initial;
}

/** What is wrong, in words, by field name; the server looks again, and has the last word. */
export function formProblems(
  fields: readonly FormField[],
  values: Values,
  { allowsEmpty = false } = {},
): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const value = values[field.name];
    const isFine = allowsEmpty && value === "" && field.kind === "text";
    const problem = isFine ? null : problemOf(field, value);
    if (problem) problems[field.name] = problem;
  }
  return problems;
}

function problemOf(field: FormField, value: Value): string | null {
  const { kind, min, max, required } = field;
  if (value === undefined) return required ? t.required : null;
  if (Array.isArray(value)) {
    if (kind !== "many" || (value.length === 0 && !required)) return null;
    const least = Math.max(min ?? 0, required ? 1 : 0);
    if (value.length < least) return t.pickAtLeast(least);
    return max !== null && value.length > max ? t.pickAtMost(max) : null;
  }
  if (typeof value !== "string") return null;
  if (value.trim() === "") return required ? t.required : null;
  if (kind === "integer" || kind === "number") {
    const number = Number(value);
    if (Number.isNaN(number)) return t.number;
    if (kind === "integer" && !Number.isInteger(number)) return t.wholeNumber;
    if (min !== null && number < min) return t.atLeast(min);
    return max !== null && number > max ? t.atMost(max) : null;
  }
  if (kind === "one")
    return field.choices.some((choice) => keyOf(choice.value) === value) ? null : t.fromList;
  if (kind === "email" && !/^[^\s@]+@[^\s@]+$/.test(value)) return t.email;
  if (kind === "uri" && !/^[a-z][a-z0-9+.-]*:\S+$/i.test(value)) return t.address;
  if (min !== null && value.length < min) return t.atLeastCharacters(min);
  return max !== null && value.length > max ? t.atMostCharacters(max) : null;
}

/** The content that the fields hold: optional ones that were left empty are left out. */
export function contentOf(fields: readonly FormField[], values: Values): JsonObject {
  const content: JsonObject = {};
  for (const field of fields) {
    const found = jsonOf(field, values[field.name]);
    if (found !== undefined) content[field.name] = found;
  }
  return content;
}

/** One field's value as JSON; undefined: it is left out. What does not fit its type stays text. */
function jsonOf(field: FormField, value: Value): Json | undefined {
  const { kind, required, choices } = field;
  if (value === undefined || typeof value === "boolean") return value;
  const chosen = (key: Value): Json => {
    const choice = choices.find((one) => keyOf(one.value) === key);
    return choice ? choice.value : String(key);
  };
  if (Array.isArray(value)) {
    const found = kind === "many" ? value.map(chosen) : value.flatMap((one) => listed(field.item, one));
    return found.length > 0 || required ? found : undefined;
  }
  if (typeof value !== "string") {
    const found = contentOf(field.fields, value);
    return Object.keys(found).length > 0 || required ? found : undefined;
  }
  if (kind === "text") return value !== "" || required ? value : undefined;
  if (value.trim() === "") return undefined;
  switch (kind) {
    case "integer":
    case "number":
      return Number.isFinite(Number(value)) ? Number(value) : value;
    case "one":
      return chosen(value);
    case "date-time":
      return momentOf(value).toISOString();
    case "json":
      try {
        return JSON.parse(value) as Json;
      } catch {
        return value;
      }
    default:
      return value;
  }
}

function listed(item: FormField | null, value: Value): Json[] {
  const found = item ? jsonOf(item, value) : undefined;
  return found === undefined ? [] : [found];
}
