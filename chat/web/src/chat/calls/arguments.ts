/** Arguments of a tool call as a person edits them: simple fields where the schema is flat, JSON otherwise. Pure. */
import { type FormField, formFields, isObject, resolved, type Values } from "../../forms/schema";
import t from "../../texts/questions";
import type { Json, JsonObject } from "../../wire";

/** Kinds that a line of a form is enough for. */
const FLAT: ReadonlySet<FormField["kind"]> = new Set(["text", "integer", "number", "boolean", "one"]);

/** The fields of a flat schema that these arguments fit; null where the schema is missing or holds anything nested. */
export function flatFields(schema: JsonObject | null, args: JsonObject): FormField[] | null {
  const properties = schema && resolved(schema, schema).properties;
  if (!schema || !isObject(properties)) return null;
  const fields = formFields(schema);
  const names = new Set(fields.map((field) => field.name));
  const isFlat =
    fields.length > 0 &&
    fields.length === Object.keys(properties).length &&
    Object.keys(args).every((name) => names.has(name)) &&
    fields.every((field) => FLAT.has(field.kind) && fits(field, args[field.name]));
  return isFlat ? fields : null;
}

function fits({ kind, choices }: FormField, value: Json | undefined): boolean {
  if (!choices.every((choice) => typeof choice.value === "string")) return false;
  if (value === undefined) return true;
  if (kind === "boolean") return typeof value === "boolean";
  if (kind === "integer" || kind === "number") return typeof value === "number";
  return typeof value === "string";
}

/** Arguments as they stand in such fields. */
export function typedValues(fields: readonly FormField[], args: JsonObject): Values {
  return Object.fromEntries(
    fields.flatMap(({ name }) => {
      const value = args[name];
      return value === undefined ? [] : [[name, typeof value === "boolean" ? value : String(value)]];
    }),
  );
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
