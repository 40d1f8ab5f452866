/**
 * What lies over the chat, such as dialogs, and the browser's history: Back closes the topmost before it leads elsewhere.
 *
 * Each layer has an entry of the history behind the page's own, at the same address. Where a layer closes in another
 * way, its entry is left too. An entry without a layer, as after a reload, is left at once; Forward goes past it.
 *
 * Only the chat starts this. On other pages nothing touches the history.
 */
interface Layer {
  leave: () => void;
}

interface Entry {
  /** How many layers it is for. */
  layer?: number;
  /** How long the history was when it was the last. */
  end?: number;
}

/** A browser that has found no entry by then will not find it. */
const LONGEST_MS = 2000;

const layers: Layer[] = [];
/** What waits until the page stands on an entry of its own, in order. */
const tasks: (() => void)[] = [];
/** The path that the tasks lead to. */
let heading: string | null = null;
/** Runs while the history is on its way to another entry because of us. */
let moving: ReturnType<typeof setTimeout> | undefined;
/** Runs while the browser may be leaving for another page, which a new entry would keep it from. */
let leaving: ReturnType<typeof setTimeout> | undefined;
/** The address that the page shows. */
let shown = location.href;
let arrived: (() => void) | null = null;

const entry = (): Entry => (history.state as Entry | null) ?? {};
const depth = (): number => entry().layer ?? 0;

/** The length says nothing once the browser drops the oldest entries, and `canGoForward` nothing of other sites. */
const liesAhead = (): boolean =>
  history.length > (entry().end ?? 0) || (globalThis.navigation?.canGoForward ?? false);

function push(): void {
  const layer = depth() + 1;
  history.pushState({ layer }, "");
  history.replaceState({ layer, end: history.length }, "");
}

/** Go some entries on. Where there is none, the present one becomes the page's own. */
function move(by: number): void {
  moving = setTimeout(() => {
    moving = undefined;
    history.replaceState(null, "");
    settle();
  }, LONGEST_MS);
  history.go(by);
}

function settle(): void {
  if (moving) return;
  while (tasks.length > 0 && (!arrived || depth() === 0)) tasks.shift()?.();
  if (tasks.length === 0) heading = null;
  if (moving || !arrived) return;
  const wanted = tasks.length > 0 ? 0 : layers.length;
  if (depth() > wanted) return move(wanted - depth());
  while (depth() < wanted && !leaving) push();
  shown = location.href;
}

function popped(): void {
  const isOurs = moving !== undefined;
  clearTimeout(moving);
  moving = undefined;
  if (!isOurs) {
    // The topmost first. What closes takes itself from the list, so that goes before.
    for (const layer of layers.splice(depth()).reverse()) layer.leave();
    // Forward, from the page to the entry of a layer that it has closed: on to what lies behind it.
    if (depth() > layers.length && location.href === shown && liesAhead()) return history.go(1);
  }
  if (depth() === 0 && (!isOurs || location.href !== shown)) arrived?.();
  settle();
}

/**
 * Begin to give layers their entries.
 *
 * @param hear is called when the browser has gone to another address of the page.
 */
export function startLayers(hear: () => void): void {
  arrived = hear;
  addEventListener("popstate", popped);
  document.addEventListener("click", followLater);
  settle();
}

/**
 * Lie over the page from now on.
 *
 * @param leave closes it; called where somebody goes back.
 * @returns what says that it has closed.
 */
export function openLayer(leave: () => void): () => void {
  const layer = { leave };
  layers.push(layer);
  settle();
  return () => {
    const at = layers.indexOf(layer);
    if (at < 0) return;
    layers.splice(at, 1);
    settle();
  };
}

/** Do what may leave the page, or change its address, as soon as no layer's entry is in the way. */
export function onOwnEntry(run: () => void): void {
  tasks.push(run);
  settle();
}

/** Follow a link of a layer, or beside one that its press closes. The browser would follow it and go back at once. */
function followLater(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href]") : null;
  const isPlain = !(event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || event.defaultPrevented || (depth() === 0 && !moving)) return;
  if (link.target || link.hasAttribute("download") || !/^https?:$/.test(link.protocol)) return;
  event.preventDefault();
  onOwnEntry(() => {
    // It may be a file, which leaves this page where it is.
    leaving = setTimeout(() => {
      leaving = undefined;
      settle();
    }, LONGEST_MS);
    location.assign(link.href);
  });
}

/** The path of the page, also while the browser is on its way there. */
export const pathOfPage = (): string => heading ?? location.pathname;

/** Give the page another address: a new entry, or another address for the present one. */
export function moveTo(path: string, { replaces = false } = {}): void {
  heading = path;
  onOwnEntry(() => {
    if (replaces) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
  });
}
