/** Entry of the servers page: listens to the workspace and redraws a server when the server side says it changed. */
import "./site";
import { LiveSocket } from "./net/socket";

interface Htmx {
  ajax(verb: string, path: string, context: { target: string; swap: string }): Promise<void>;
}

const box = document.getElementById("servers");
const timers = new Map<string, ReturnType<typeof setTimeout>>();

function redraw(id: string): void {
  const card = document.getElementById(`server-${id}`);
  const htmx = (globalThis as { htmx?: Htmx }).htmx;
  const url = box?.dataset.serversUrl;
  if (!card || !htmx || !url) return;
  // Somebody who is choosing in this card is not interrupted, and the answer to a test stays long enough to be read.
  if (card.querySelector(".menu-pop:popover-open, select:focus") || isFresh(card)) {
    later(id, 2000);
    return;
  }
  void htmx.ajax("GET", `${url}${encodeURIComponent(id)}/`, { target: `#server-${id}`, swap: "outerMorph" });
}

const REPORT_STAYS_MS = 10_000;
const reportedAt = new WeakMap<Element, number>();

function isFresh(card: HTMLElement): boolean {
  const report = card.querySelector("[data-report]");
  if (!report) return false;
  const since = reportedAt.get(report) ?? Date.now();
  reportedAt.set(report, since);
  return Date.now() - since < REPORT_STAYS_MS;
}

/** A morphed control keeps what was clicked; the server's word is in its attributes. */
function showServersWord(): void {
  for (const toggle of box?.querySelectorAll<HTMLInputElement>("input[type=checkbox]") ?? []) {
    toggle.checked = toggle.defaultChecked;
  }
  for (const option of box?.querySelectorAll<HTMLOptionElement>(".tool-controls option") ?? []) {
    option.selected = option.defaultSelected;
  }
}

for (const name of ["htmx:after:swap", "htmx:response:error", "htmx:error"]) {
  document.addEventListener(name, showServersWord);
}

/** Several changes within a moment cost one request. */
function later(id: string, ms: number): void {
  clearTimeout(timers.get(id));
  timers.set(
    id,
    setTimeout(() => redraw(id), ms),
  );
}

function redrawAll(): void {
  for (const card of document.querySelectorAll<HTMLElement>("[data-server]"))
    later(card.dataset.server ?? "", 100);
}

if (box?.dataset.socket) {
  const url = new URL(box.dataset.socket, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let wasOpen = false;
  const socket = new LiveSocket({
    url: url.href,
    onStatus: () => undefined,
    onOpen: () => {
      if (wasOpen) redrawAll(); // nudges may have been missed
      wasOpen = true;
    },
    onEvent: (event) => {
      if (event.type !== "workspace.changed") return;
      if (event.kind !== "server.changed" && event.kind !== "tools.changed") return;
      const isKnown = document.getElementById(`server-${event.id}`) !== null;
      if (isKnown) later(event.id, 300);
    },
  });
  socket.start();
}
