/** What a server asks in a form, as fields a person fills in, and back to the content that it gets. Pure. */
import t from "../texts/questions";
import type { Json, JsonObject } from "../wire";

export interface Choice {
  value: string;
  title: string;
}

export type FieldKind =
  | "text"
  | "email"
  | "uri"
  | "date"
  | "date-time"
  | "integer"
  | "number"
  | "boolean"
  | "one"
  | "many";

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
}

export type Value = string | boolean | string[];
export type Values = Record<string, Value>;

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");
const numberOf = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);
const SECRET = /pass(word|phrase)|secret|token|api.?key|credential|\bpin\b|cvv|card.?number/i;

export function formFields(schema: JsonObject): FormField[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).flatMap(([name, property]) =>
    isObject(property) ? [fieldOf(name, property, required.includes(name))] : [],
  );
}

function fieldOf(name: string, property: JsonObject, required: boolean): FormField {
  const kind = kindOf(property);
  const items = isObject(property.items) ? property.items : {};
  const isNumber = kind === "integer" || kind === "number";
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
    initial: initialOf(kind, property.default),
  };
}

function kindOf(property: JsonObject): FieldKind {
  switch (property.type) {
    case "array":
      return "many";
    case "boolean":
    case "integer":
    case "number":
      return property.type;
    default:
      if (property.enum || property.oneOf || property.anyOf) return "one";
      switch (property.format) {
        case "email":
        case "uri":
        case "date":
        case "date-time":
          return property.format;
        default:
          return "text";
      }
  }
}

/** Plain values, values with a list of names beside them, or `{const, title}` pairs. */
function choicesOf(property: JsonObject): Choice[] {
  const pairs = property.oneOf ?? property.anyOf;
  if (Array.isArray(pairs)) {
    return pairs.flatMap((pair) =>
      isObject(pair) && typeof pair.const === "string"
        ? [{ value: pair.const, title: textOf(pair.title) || pair.const }]
        : [],
    );
  }
  const values = Array.isArray(property.enum) ? property.enum : [];
  const names = Array.isArray(property.enumNames) ? property.enumNames : [];
  return values.flatMap((value, i) =>
    typeof value === "string" ? [{ value, title: textOf(names[i]) || value }] : [],
  );
}

function initialOf(kind: FieldKind, value: Json | undefined): Value {
  if (kind === "boolean") return value === true;
  if (kind === "many") return Array.isArray(value) ? value.filter((v) => typeof v === "string") : [];
  if (kind === "date-time") return localMoment(textOf(value));
  return typeof value === "number" ? String(value) : textOf(value);
}

/** An ISO moment as the browser's date-and-time field writes it: local, without a zone. */
function localMoment(iso: string): string {
  const moment = new Date(iso);
  if (iso === "" || Number.isNaN(moment.getTime())) return "";
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

export function initialValues(fields: FormField[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, field.initial]));
}

/** What is wrong, in words, by field name; the server looks again, and has the last word. */
export function formProblems(fields: FormField[], values: Values): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const problem = problemOf(field, values[field.name] ?? field.initial);
    if (problem) problems[field.name] = problem;
  }
  return problems;
}

function problemOf(field: FormField, value: Value): string | null {
  const { kind, min, max } = field;
  if (typeof value === "boolean") return null;
  if (Array.isArray(value)) {
    if (value.length === 0 && !field.required) return null;
    const least = Math.max(min ?? 0, field.required ? 1 : 0);
    if (value.length < least) return t.pickAtLeast(least);
    return max !== null && value.length > max ? t.pickAtMost(max) : null;
  }
  if (value.trim() === "") return field.required ? t.required : null;
  if (kind === "integer" || kind === "number") {
    const number = Number(value);
    if (Number.isNaN(number)) return t.number;
    if (kind === "integer" && !Number.isInteger(number)) return t.wholeNumber;
    if (min !== null && number < min) return t.atLeast(min);
    return max !== null && number > max ? t.atMost(max) : null;
  }
  if (kind === "one") return field.choices.some((choice) => choice.value === value) ? null : t.fromList;
  if (kind === "email" && !/^[^\s@]+@[^\s@]+$/.test(value)) return t.email;
  if (kind === "uri" && !/^[a-z][a-z0-9+.-]*:\S+$/i.test(value)) return t.address;
  if (min !== null && value.length < min) return t.atLeastCharacters(min);
  return max !== null && value.length > max ? t.atMostCharacters(max) : null;
}

/** The content that goes to the server: optional fields that were left empty are left out. */
export function contentOf(fields: FormField[], values: Values): JsonObject {
  const content: JsonObject = {};
  for (const field of fields) {
    const value = values[field.name] ?? field.initial;
    if (typeof value === "boolean") content[field.name] = value;
    else if (Array.isArray(value)) {
      if (value.length > 0 || field.required) content[field.name] = value;
    } else if (value.trim() === "") continue;
    else if (field.kind === "integer" || field.kind === "number") content[field.name] = Number(value);
    else if (field.kind === "date-time") content[field.name] = new Date(value).toISOString();
    else content[field.name] = value;
  }
  return content;
}

/** An address in three pieces, so that its host can be marked. */
export function markHost(url: string, host: string): [string, string, string] {
  const at = url.toLowerCase().indexOf(host.toLowerCase(), url.indexOf("//") + 2);
  if (host === "" || at < 0) return [url, "", ""];
  return [url.slice(0, at), url.slice(at, at + host.length), url.slice(at + host.length)];
}

/** Only such an address gets a button. */
export function canOpen(url: string): boolean {
  try {
    const parsed = new URL(url);
    return parsed.protocol === "https:" && parsed.username === "" && parsed.password === "";
  } catch {
    return false;
  }
}

/** What a server wants to ask the model, as quoted text by role. */
export function sampledMessages(params: JsonObject): { role: string; text: string }[] {
  const messages = Array.isArray(params.messages) ? params.messages : [];
  return messages.flatMap((message) => {
    if (!isObject(message)) return [];
    const parts = Array.isArray(message.content) ? message.content : [message.content ?? ""];
    const text = parts
      .map((part) =>
        isObject(part) ? textOf(part.text) || `[${textOf(part.type) || "part"}]` : textOf(part),
      )
      .join("\n");
    return [{ role: textOf(message.role) || "user", text }];
  });
}
