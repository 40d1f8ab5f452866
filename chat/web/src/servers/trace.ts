/** The trace of one server: new messages come by themselves, and JSON becomes a tree. */

import { localTimes } from "../pages/times";
import t from "../texts/pages";
import { readableJson } from "./json";

const EVERY_MS = 1500;
const MOST_ROWS = 1000;

export function startTrace(): void {
  const list = document.getElementById("trace");
  const rows = document.getElementById("trace-rows");
  if (!list || !rows) return;
  const pause = document.getElementById("trace-pause");
  let since = list.dataset.since ?? "";
  let isPaused = false;

  pause?.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    const label = pause.querySelector("[data-label]");
    if (label) label.textContent = isPaused ? t.resume : t.pause;
  });

  async function look(): Promise<void> {
    if (isPaused || document.hidden || !list || !rows) return;
    const query = new URLSearchParams(list.dataset.query ?? "");
    query.set("since", since);
    const answer = await fetch(`${list.dataset.news}?${query}`, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(`<ol>${await answer.text()}</ol>`, "text/html");
    since = page.querySelector<HTMLElement>("[data-now]")?.dataset.now ?? since;
    show([...page.querySelectorAll<HTMLElement>(".trace-row")]);
  }

  /** Rows come newest first; what is here already stays where it is. */
  function show(found: HTMLElement[]): void {
    if (!rows) return;
    const fresh = found.filter((row) => !document.getElementById(row.id));
    if (fresh.length === 0) return;
    const first = rows.querySelector(".trace-row");
    for (const row of fresh) {
      localTimes(row);
      rows.insertBefore(row, first);
      (globalThis as { htmx?: { process(element: Element): void } }).htmx?.process(row);
    }
    const all = rows.querySelectorAll(".trace-row");
    for (const old of [...all].slice(MOST_ROWS)) old.remove();
    document.getElementById("trace-empty")?.setAttribute("hidden", "");
  }

  const again = () =>
    void look()
      .catch(() => undefined) // the next look comes soon, and the server may be back
      .finally(() => setTimeout(again, EVERY_MS));
  setTimeout(again, EVERY_MS);

  const detail = document.getElementById("trace-detail");
  document.addEventListener("htmx:after:swap", () => {
    const box = detail?.querySelector<HTMLElement>("[data-json]:not([data-drawn])");
    if (box) readableJson(box);
    mark();
  });

  rows.addEventListener("click", (event) => {
    const row = (event.target as Element).closest<HTMLElement>(".trace-row");
    if (!row) return;
    chosen = row.id;
    mark();
  });

  let chosen = "";
  function mark(): void {
    for (const row of rows?.querySelectorAll(".trace-row") ?? []) {
      row.toggleAttribute("data-chosen", row.id === chosen);
    }
  }
}
