/** The form of the tool tester, made from the tool's input schema; what it holds is always in the JSON field too. */
import { drawResult, type Part } from "./servers-json";
import calls from "./texts/calls";
import common from "./texts/common";
import t from "./texts/questions";
import type { Json, JsonObject } from "./wire";

const DEEPEST = 4;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A drawn part of the form, and what it holds; undefined: left out. */
interface Drawn {
  element: HTMLElement;
  value(): Json | undefined;
}

let number = 0;

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function kindOf(schema: JsonObject): string {
  if (Array.isArray(schema.enum)) return "enum";
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  if (type === "object" && isObject(schema.properties)) return "object";
  if (type === "array" && isObject(schema.items)) return "array";
  return ["string", "number", "integer", "boolean"].includes(textOf(type)) ? textOf(type) : "json";
}

/** One value with its label; `required` ones are sent even when empty. */
export function drawField(name: string, schema: JsonObject, required: boolean, depth = 0): Drawn {
  const kind = depth >= DEEPEST ? "json" : kindOf(schema);
  const label = textOf(schema.title) || name;
  if (kind === "object") return drawObject(label, schema, required, depth);
  if (kind === "array") return drawArray(label, schema, required, depth);
  const box = element("div", "field");
  const id = `tester-${++number}`;
  const title = element("label", "", label);
  title.htmlFor = id;
  if (!required) title.append(" ", element("span", "optional", common.optional));
  const input = drawInput(kind, schema, required);
  input.id = id;
  box.append(title, input);
  const described = textOf(schema.description);
  if (described) box.append(element("div", "help", described));
  return { element: box, value: () => read(input, kind, schema, required) };
}

function drawInput(
  kind: string,
  schema: JsonObject,
  required: boolean,
): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  const initial = schema.default;
  if (kind === "enum" || kind === "boolean") {
    const select = element("select");
    const values = kind === "enum" ? (schema.enum as Json[]) : [true, false];
    if (!required || initial === undefined) select.append(new Option(t.unset, ""));
    for (const value of values) {
      const words = kind === "boolean" ? (value ? t.yes : t.no) : String(value);
      select.append(new Option(words, JSON.stringify(value), false, value === initial));
    }
    return select;
  }
  if (kind === "json") {
    const area = element("textarea", "mono");
    area.rows = 3;
    area.placeholder = common.json;
    area.spellcheck = false;
    if (initial !== undefined) area.value = JSON.stringify(initial, null, 2);
    return area;
  }
  const input = element("input");
  input.autocomplete = "off";
  if (kind === "number" || kind === "integer") {
    input.inputMode = "decimal";
  } else if (schema.format === "date") {
    input.type = "date";
  }
  if (initial !== undefined && initial !== null) input.value = String(initial);
  return input;
}

function read(
  input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
  kind: string,
  schema: JsonObject,
  required: boolean,
): Json | undefined {
  const text = input.value;
  if (text === "") return required && kind === "string" && schema.default === undefined ? "" : undefined;
  if (kind === "string") return text;
  if (kind === "number" || kind === "integer") {
    const value = Number(text);
    return Number.isFinite(value) ? value : text; // the gate says what is wrong with it
  }
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function drawObject(label: string, schema: JsonObject, required: boolean, depth: number): Drawn {
  const box = element("fieldset", "field tester-group");
  box.append(element("legend", "", label));
  const wanted = Array.isArray(schema.required) ? schema.required : [];
  const parts = Object.entries(schema.properties as JsonObject).flatMap(([name, inner]) =>
    isObject(inner) ? [[name, drawField(name, inner, wanted.includes(name), depth + 1)] as const] : [],
  );
  for (const [, part] of parts) box.append(part.element);
  return {
    element: box,
    value: () => {
      const found = parts.flatMap(([name, part]) => {
        const value = part.value();
        return value === undefined ? [] : [[name, value] as const];
      });
      return found.length > 0 || required ? Object.fromEntries(found) : undefined;
    },
  };
}

function drawArray(label: string, schema: JsonObject, required: boolean, depth: number): Drawn {
  const box = element("fieldset", "field tester-group");
  box.append(element("legend", "", label));
  const described = textOf(schema.description);
  if (described) box.append(element("div", "help", described));
  const list = element("div", "grid gap-2");
  const items: Drawn[] = [];
  const more = element("button", "btn btn-sm btn-outline-quiet", t.addItem);
  more.type = "button";
  more.addEventListener("click", () => {
    const item = drawField(`${label} ${items.length + 1}`, schema.items as JsonObject, true, depth + 1);
    const row = element("div", "tester-item");
    const remove = element("button", "btn btn-sm btn-quiet", t.removeItem);
    remove.type = "button";
    remove.addEventListener("click", () => {
      items.splice(items.indexOf(item), 1);
      row.remove();
      more.dispatchEvent(new Event("input", { bubbles: true }));
    });
    row.append(item.element, remove);
    list.append(row);
    items.push(item);
    more.dispatchEvent(new Event("input", { bubbles: true }));
  });
  box.append(list, more);
  return {
    element: box,
    value: () => {
      const found = items.map((item) => item.value()).filter((value): value is Json => value !== undefined);
      return found.length > 0 || required ? found : undefined;
    },
  };
}

export function startTester(): void {
  const source = document.getElementById("tool-schema");
  const box = document.getElementById("tester-form");
  const area = document.querySelector<HTMLTextAreaElement>("#tester-arguments");
  const raw = document.getElementById("tester-json");
  const mode = document.getElementById("tester-mode");
  if (!source || !box || !area || !raw || !mode) return;
  const schema = JSON.parse(source.textContent ?? "{}") as JsonObject;

  document.addEventListener("htmx:after:swap", () => {
    const shown = document.querySelector<HTMLElement>("[data-result]:not([data-drawn])");
    const given = document.getElementById(shown?.dataset.result ?? "");
    if (!shown || !given) return;
    shown.dataset.drawn = "";
    const whole = JSON.parse(shown.querySelector("pre")?.textContent ?? "{}") as { structured?: Json };
    const result = JSON.parse(given.textContent ?? "{}") as { content: Part[] };
    drawResult(shown, result.content, whole.structured);
  });

  const fields = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  if (fields.length === 0) {
    raw.hidden = true;
    return;
  }
  const form = drawObject(calls.arguments, schema, true, 0);
  box.append(form.element);
  const write = () => {
    area.value = JSON.stringify(form.value() ?? {}, null, 2);
  };
  box.addEventListener("input", write);
  write();
  const show = (isRaw: boolean) => {
    raw.hidden = !isRaw;
    box.hidden = isRaw;
    mode.setAttribute("aria-pressed", String(isRaw));
    if (!isRaw) write();
  };
  mode.hidden = false;
  mode.addEventListener("click", () => show(raw.hidden === true));
  show(false);
}
