/** Entry of the servers pages: listens to the workspace, and redraws a server when the server side says it changed. */
import "./site";
import { type Reading, readAgain } from "./net/reading-again";
import { hearOfWorkspace } from "./net/workspace";
import { onSignedIn } from "./pages/sign-in";
import { startAuthFields } from "./servers/auth";
import { startKlavis } from "./servers/klavis";
import { startTester } from "./servers/tester";
import { startTrace } from "./servers/trace";

interface Htmx {
  swap(context: { sourceElement: Element; target: Element; text: string; swap: string }): Promise<void>;
  process(element: Element): void;
}

const box = document.getElementById("servers");
/** Whether the page shows every server: no search, and no page after this one. */
const isWhole = () => location.search === "" && !document.querySelector("[data-next]");
const CHANGES: ReadonlySet<string> = new Set(["server.changed", "server.checked", "tools.changed"]);
const htmx = () => (globalThis as { htmx?: Htmx }).htmx;

async function redraw(id: string): Promise<void> {
  const url = box?.dataset.serversUrl;
  if (!box || !url) return;
  const address = `${url}${encodeURIComponent(id)}/`;
  const card = document.getElementById(`server-${id}`);
  if (!card) return isWhole() ? add(address, id) : undefined;
  if (isInUse(card)) return later(id, { afterMs: IN_USE_MS });
  // Not asked for by htmx: one that was deleted is no error to tell the person of.
  const answer = await fetch(shownAs(card, address), { headers: { "HX-Request": "true" } });
  // The answer to a test may have come while this was on its way.
  if (isInUse(card)) return later(id, { afterMs: IN_USE_MS });
  if (answer.status === 404) card.remove();
  else if (answer.ok && !answer.redirected)
    await htmx()?.swap({ sourceElement: card, target: card, text: await answer.text(), swap: "outerMorph" });
}

/** Somebody who is choosing in a card is not interrupted, and the answer to a test stays long enough to be read. */
function isInUse(card: HTMLElement): boolean {
  return card.querySelector(".menu-pop:popover-open, select:focus") !== null || isFresh(card);
}

/** A row stays a row. */
function shownAs(card: HTMLElement, address: string): string {
  return card.hasAttribute("data-row") ? `${address}?as=row` : address;
}

/** Show a server that somebody else has added, or that the address names and another page of the list has. */
async function add(address: string, id: string): Promise<void> {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok || answer.redirected || document.getElementById(`server-${id}`)) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const card = page.getElementById(`server-${id}`);
  if (!card || !box) return;
  const own = document.getElementById("own-servers");
  const list = card.dataset.personal === "yes" && own ? own : box;
  list.querySelector(".empty-state")?.remove();
  if (isWhole()) list.append(card);
  else list.prepend(card);
  htmx()?.process(card);
}

/** The server that was just added or changed is in sight, wherever the list has it. */
async function showNamed(): Promise<void> {
  const id = /^#server-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  const url = box?.dataset.serversUrl;
  if (!id || !url) return;
  if (!document.getElementById(`server-${id}`)) await add(`${url}${id}/`, id);
  document.getElementById(`server-${id}`)?.scrollIntoView({ block: "center" });
}

const IN_USE_MS = 2_000;
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
  for (const toggle of document.querySelectorAll<HTMLInputElement>(".tool-controls input[type=checkbox]")) {
    toggle.checked = toggle.defaultChecked;
  }
  for (const option of document.querySelectorAll<HTMLOptionElement>(".tool-controls option")) {
    option.selected = option.defaultSelected;
  }
}

for (const name of ["htmx:after:swap", "htmx:response:error", "htmx:error"]) {
  document.addEventListener(name, showServersWord);
}

function later(id: string, how: Reading = {}): void {
  readAgain(`server-${id}`, () => void redraw(id).catch(() => undefined), how);
}

function redrawAll(): void {
  for (const card of document.querySelectorAll<HTMLElement>("[data-server]"))
    later(card.dataset.server ?? "", { isOwn: true });
}

if (box)
  hearOfWorkspace({
    onChange: (kind, id) => {
      if (CHANGES.has(kind)) later(id);
    },
    onReturn: redrawAll,
  });

onSignedIn(({ server, ok }) => {
  if (ok) later(server, { isOwn: true });
});
void showNamed().catch(() => undefined);
startTrace();
startKlavis();
void startTester(); // without it the arguments are written as JSON
startAuthFields();
