/** JSON on pages that Django draws, as a tree that opens part by part; without it the plain text stays. */
import { saysTheSame } from "../chat/calls/repeated";
import t from "../texts/calls";
import common from "../texts/common";
import type { Json } from "../wire";

const OPEN_TO = 3;
const MANY = 100;

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

/** A value with its name: a line for a plain one, a part that opens for the others. */
function jsonNode(name: string, value: Json, depth = 0): HTMLElement {
  const key = element("span", "json-key", name);
  if (value === null || typeof value !== "object") {
    const line = element("div", "json-line");
    const isText = typeof value === "string";
    line.append(
      key,
      element("span", isText ? "json-string" : "json-literal", isText ? value : String(value)),
    );
    return line;
  }
  const entries = Object.entries(value);
  const part = element("details", "json-part");
  part.open = depth < OPEN_TO;
  const head = element("summary", "json-toggle");
  const size = Array.isArray(value) ? t.items(entries.length) : t.fieldCount(entries.length);
  head.append(key, element("span", "quiet", size));
  part.append(head);
  // Drawn when it is opened: a large message costs nothing until somebody looks into it.
  const draw = () => {
    if (!part.open || part.querySelector(":scope > .json-children")) return;
    const inner = element("div", "json-children");
    for (const [at, child] of entries.slice(0, MANY)) inner.append(jsonNode(at, child, depth + 1));
    if (entries.length > MANY) inner.append(element("p", "quiet", t.more(entries.length - MANY)));
    part.append(inner);
  };
  part.addEventListener("toggle", draw);
  draw();
  return part;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // cut, or no JSON
  }
}

/** Turn the JSON text in a box into a tree with a button that copies it. */
export function readableJson(box: HTMLElement): void {
  box.dataset.drawn = "";
  const text = box.querySelector("pre")?.textContent ?? "";
  const value = parsed(text);
  if (value === undefined || value === null || typeof value !== "object") return;
  const tree = element("div", "json-tree");
  for (const [name, child] of Object.entries(value)) tree.append(jsonNode(name, child, 1));
  const copy = element("button", "btn btn-sm btn-quiet", common.copy);
  copy.type = "button";
  copy.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(() => {
      copy.textContent = common.copied;
    });
  });
  box.replaceChildren(copy, tree);
}

export interface Part {
  type: string;
  text?: string | null;
  mime_type?: string | null;
  data?: string;
  uri?: string;
  name?: string;
}

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const SOUNDS = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/webm"]);

function shown(part: Part): HTMLElement {
  const type = part.mime_type ?? "";
  if (part.type === "image" && IMAGES.has(type)) {
    const image = element("img", "result-image");
    image.src = `data:${type};base64,${part.data}`;
    image.alt = t.returned;
    return image;
  }
  if (part.type === "audio" && SOUNDS.has(type)) {
    const audio = element("audio", "w-full");
    audio.controls = true;
    audio.preload = "none";
    audio.src = `data:${type};base64,${part.data}`;
    return audio;
  }
  if (part.type === "resource_link" || part.type === "resource") {
    const box = element("div", "text-sm break-all", `${part.name || t.resource}: `);
    box.append(element("code", "", part.uri ?? ""), element("span", "quiet", ` ${type}`));
    if (part.text) box.append(element("pre", "body-text", part.text));
    return box;
  }
  if (part.type !== "text") {
    return element("p", "quiet", t.notShown(part.type, type || t.unknownKind));
  }
  const value = parsed(part.text ?? "");
  if (typeof value === "object" && value !== null) return jsonNode(common.json, value);
  return element("pre", "body-text", part.text || t.empty);
}

/** What a tool gave back. Links are text: nothing that a server names is fetched. */
export function drawResult(box: HTMLElement, parts: Part[], structured: Json | undefined): void {
  const all = element("div", "grid gap-3");
  all.append(...parts.map(shown));
  if (structured !== undefined && structured !== null && !saysTheSame(parts, structured))
    all.append(jsonNode(t.structured, structured));
  box.replaceChildren(all);
}
