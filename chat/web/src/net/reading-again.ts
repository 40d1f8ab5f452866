/** When a page reads again what has changed. All open pages hear of a change at once. They must not all read at once. */

const SETTLE_MS = 250;
/** What a person does shows within this time, so nothing makes them wait for it. */
const ACTS_MS = 10_000;
const LOOKS_MS = 60_000;
/** The random pause of a page that somebody looks at, and of one that only lies open. */
const LOOKING_SPREAD_MS = 1_000;
const IDLE_SPREAD_MS = 10_000;

export interface Reading {
  /** Only this person's pages hear of it: they are few, and show at once what another of them did. */
  isOwn?: boolean;
  /** It is read although nobody sees the page, since the person is notified of it. */
  isReadUnseen?: boolean;
  /** How long it settles, such as while the person uses what would be drawn anew. */
  afterMs?: number;
}

let touched = Date.now();
for (const name of ["pointerdown", "keydown", "scroll"])
  addEventListener(name, () => (touched = Date.now()), { passive: true, capture: true });

const isUnseen = (): boolean => document.visibilityState === "hidden";

function spread(): number {
  const idle = Date.now() - touched;
  const isLooking = idle < LOOKS_MS && !isUnseen();
  const most = idle < ACTS_MS ? 0 : isLooking ? LOOKING_SPREAD_MS : IDLE_SPREAD_MS;
  return Math.random() * most;
}

const timers = new Map<unknown, { due: number; timer: ReturnType<typeof setTimeout> }>();
/** What changed while nobody saw the page: it is read once somebody does. */
const missed = new Map<unknown, () => unknown>();

/** Read something again after a pause. Several changes of it within the pause cost one request. */
export function readAgain(
  key: string | Element,
  read: () => unknown,
  { isOwn = false, isReadUnseen = false, afterMs = SETTLE_MS }: Reading = {},
): void {
  const waitsForEyes = () => isUnseen() && !isReadUnseen;
  if (waitsForEyes()) {
    missed.set(key, read);
    return;
  }
  const ms = afterMs + (isOwn ? 0 : spread());
  const due = Date.now() + ms;
  const waiting = timers.get(key);
  if (waiting && waiting.due <= due) return;
  clearTimeout(waiting?.timer);
  const run = () => {
    timers.delete(key);
    if (waitsForEyes()) missed.set(key, read);
    else read();
  };
  timers.set(key, { due, timer: setTimeout(run, ms) });
}

document.addEventListener("visibilitychange", () => {
  if (isUnseen()) return;
  const reads = [...missed.values()];
  missed.clear();
  for (const read of reads) read();
});
