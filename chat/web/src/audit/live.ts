/** A list of the log that shows new rows, and the numbers above them, by itself while nobody reads further down. */

import { note, noted } from "../browser/tab-memory";
import { refusalIn } from "../pages/refusals";
import { localTimes } from "../pages/times";
import t from "../texts/pages";

export const EVERY_MS = 5_000;
/** Without a touch of the page for so long it rests, so that a forgotten tab asks for nothing. */
export const RESTS_AFTER_MS = 30 * 60_000;
const KEY = "trellis:log-is-live";
/** Whoever is signed out, or may not see the log any more. Asking again changes nothing. */
const REFUSALS = [401, 403, 404];

/** Whether the reader is at something that new rows would take away. */
export function isReading(list: Element): boolean {
  return (
    list.querySelector('[aria-expanded="true"]') !== null ||
    list.contains(document.activeElement) ||
    list.getBoundingClientRect().top < 0
  );
}

/** Put parts of a page in the places of those with their ids; one that is in use stays. */
function put(parts: Iterable<Element>, placed: (part: Element) => void): void {
  for (const part of parts) {
    const old = document.getElementById(part.id);
    if (!old || old.contains(document.activeElement) || old.innerHTML === part.innerHTML) continue;
    const wasOpen = old.querySelector("details")?.open ?? false;
    old.replaceChildren(...part.childNodes);
    const details = old.querySelector("details");
    if (details) details.open = wasOpen;
    placed(old);
  }
}

/**
 * Start the button that makes a list live.
 *
 * @param placed is called with each part of the page that came anew.
 */
export function startLive(
  button: HTMLButtonElement,
  list: HTMLElement,
  placed: (part: Element) => void,
): () => void {
  const label = button.querySelector<HTMLElement>("[data-live-label]");
  let isOn = false;
  let touched = Date.now();
  let asking: AbortController | null = null;
  let known = "";
  const refusal = document.createElement("p");
  refusal.className = "notice m-4";
  refusal.dataset.tone = "warn";
  refusal.role = "alert";

  const show = (state: keyof typeof t.liveStates) => {
    button.setAttribute("aria-pressed", String(isOn));
    button.dataset.state = isOn ? state : "off";
    if (label) label.textContent = isOn ? t.liveStates[state] : t.live;
  };

  const look = async () => {
    if (!isOn || asking) return;
    const rests = document.hidden || Date.now() - touched > RESTS_AFTER_MS;
    if (rests || isReading(list)) return show("paused");
    asking = new AbortController();
    try {
      const signal = AbortSignal.any([asking.signal, AbortSignal.timeout(EVERY_MS * 4)]);
      const headers = { "HX-Request": "true", ...(known && { "If-None-Match": known }) };
      const answer = await fetch(location.href, { headers, cache: "no-store", signal });
      if (answer.status === 304) return show("on");
      const parts = await answer.text();
      if (!isOn) return;
      if (REFUSALS.includes(answer.status)) {
        turn(false);
        refusal.textContent = refusalIn(parts, answer.headers);
        return list.before(refusal);
      }
      if (!answer.ok || answer.redirected) return show("failed");
      if (isReading(list)) return show("paused");
      const fresh = document.createElement("div");
      fresh.innerHTML = parts;
      localTimes(fresh);
      put(fresh.children, placed);
      known = answer.headers.get("ETag") ?? "";
      show("on");
    } catch {
      if (isOn) show("failed");
    } finally {
      asking = null;
    }
  };

  const turn = (on: boolean) => {
    isOn = on;
    note(KEY, on ? "1" : "");
    refusal.remove();
    if (!on) asking?.abort();
    show("on");
    void look();
  };

  button.hidden = false;
  button.addEventListener("click", () => turn(!isOn));
  for (const name of ["pointerdown", "keydown", "scroll"]) {
    addEventListener(name, () => (touched = Date.now()), { passive: true });
  }
  if (noted(KEY)) turn(true);
  const timer = setInterval(look, EVERY_MS);
  return () => clearInterval(timer);
}
