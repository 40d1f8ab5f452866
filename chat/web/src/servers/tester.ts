/** The form of the tool tester, made from the tool's input schema; what it holds is always in the JSON field too. */

import type { Json, JsonObject } from "../wire";
import { drawResult, type Part } from "./json";

/** Show a call's result as a tree, as soon as it is on the page. */
function showResult(): void {
  const shown = document.querySelector<HTMLElement>("[data-result]:not([data-drawn])");
  if (!shown) return;
  const given = document.getElementById(shown.dataset.result ?? "");
  if (!given) return;
  shown.dataset.drawn = "";
  const whole = JSON.parse(shown.querySelector("pre")?.textContent ?? "{}") as { structured?: Json };
  const result = JSON.parse(given.textContent ?? "{}") as { content: Part[] };
  drawResult(shown, result.content, whole.structured);
}

export async function startTester(): Promise<void> {
  const source = document.getElementById("tool-schema");
  const box = document.getElementById("tester-form");
  const area = document.querySelector<HTMLTextAreaElement>("#tester-arguments");
  const raw = document.getElementById("tester-json");
  const mode = document.getElementById("tester-mode");
  if (!source || !box || !area || !raw || !mode) return;
  const schema = JSON.parse(source.textContent ?? "{}") as JsonObject;
  document.addEventListener("htmx:after:swap", showResult);
  if (Object.keys(schema.properties ?? {}).length === 0 && schema.$ref === undefined) {
    raw.hidden = true;
    return;
  }
  const { drawForm } = await import("../forms/mount");
  let content: JsonObject = {};
  const write = () => {
    area.value = JSON.stringify(content, null, 2);
  };
  drawForm(box, schema, (next) => {
    content = next;
    write();
  });
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
