/** Arguments of a tool call as a person edits them: simple fields where the schema is flat, JSON otherwise. Pure. */
import t from "../texts/questions";
import type { Json, JsonObject } from "../wire";

export interface Field {
  name: string;
  label: string;
  help: string;
  kind: "text" | "long" | "integer" | "number" | "boolean" | "choice";
  choices: string[];
  required: boolean;
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of a flat schema; null where the schema is missing or holds anything nested. */
export function flatFields(schema: JsonObject | null, args: JsonObject): Field[] | null {
  const properties = schema?.properties;
  if (!schema || !isObject(properties)) return null;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const names = Object.keys(properties);
  if (names.length === 0 || Object.keys(args).some((name) => !names.includes(name))) return null;
  const fields: Field[] = [];
  for (const name of names) {
    const property = properties[name];
    if (!isObject(property)) return null;
    const choices = Array.isArray(property.enum) ? property.enum : null;
    const { type, title, description } = property;
    let kind: Field["kind"];
    if (choices?.every((choice) => typeof choice === "string")) kind = "choice";
    else if (choices) return null;
    else if (type === "string") kind = String(args[name] ?? "").length > 80 ? "long" : "text";
    else if (type === "integer" || type === "number" || type === "boolean") kind = type;
    else return null;
    const value = args[name];
    if (value !== undefined && !fits(value, kind)) return null;
    fields.push({
      name,
      label: typeof title === "string" ? title : name,
      help: typeof description === "string" ? description : "",
      kind,
      choices: (choices ?? []) as string[],
      required: required.includes(name),
    });
  }
  return fields;
}

function fits(value: Json, kind: Field["kind"]): boolean {
  if (kind === "boolean") return typeof value === "boolean";
  if (kind === "integer" || kind === "number") return typeof value === "number";
  return typeof value === "string";
}

/** Change one field from what was typed; an emptied optional field is left out. */
export function withField(args: JsonObject, field: Field, typed: string | boolean): JsonObject {
  const next = { ...args };
  if (typeof typed === "boolean") next[field.name] = typed;
  else if (typed === "" && !field.required) delete next[field.name];
  else if (field.kind === "integer" || field.kind === "number") {
    const number = Number(typed);
    next[field.name] = typed.trim() === "" || Number.isNaN(number) ? typed : number;
  } else next[field.name] = typed;
  return next;
}

/** What is wrong with a value, in words, by field name. */
export function fieldProblems(fields: Field[], args: JsonObject): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const value = args[field.name];
    if (value === undefined) {
      if (field.required) problems[field.name] = t.required;
    } else if (field.kind === "integer" && !Number.isInteger(value)) {
      problems[field.name] = t.wholeNumber;
    } else if (field.kind === "number" && typeof value !== "number") {
      problems[field.name] = t.number;
    } else if (field.kind === "choice" && !field.choices.includes(String(value))) {
      problems[field.name] = t.fromList;
    }
  }
  return problems;
}

export function parseArguments(text: string): { value: JsonObject } | { problem: string } {
  try {
    const value = JSON.parse(text) as Json;
    if (!isObject(value)) return { problem: t.notObject };
    return { value };
  } catch (error) {
    return { problem: t.notJson(error instanceof Error ? error.message : t.unreadable) };
  }
}

/** Equality of JSON values; the order of an object's keys does not matter. */
export function sameJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => {
    const left = (a as JsonObject)[key];
    const right = (b as JsonObject)[key];
    return left !== undefined && right !== undefined && sameJson(left, right);
  });
}

/** JSON objects and arrays come out as trees; a plain number or word stays text. */
export function asJson(text: string): Json | undefined {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed) || trimmed.length > 500_000) return undefined;
  try {
    return JSON.parse(trimmed) as Json;
  } catch {
    return undefined;
  }
}
