/**
 * What lies over the page, such as dialogs, and the browser's history: Back closes the topmost before it leads elsewhere.
 *
 * Each layer has an entry of the history behind the page's own, at the same address. Where a layer closes in another
 * way, its entry is left too. An entry without a layer, as after a reload or with Forward, is left at once.
 */
interface Layer {
  leave: () => void;
}

interface Address {
  path: string;
  replaces: boolean;
}

const layers: Layer[] = [];
/** Where the page goes as soon as it stands on an entry of its own. */
let next: Address | null = null;
/** The history is on its way to another entry because of us. */
let isMoving = false;
let arrived: () => void = () => {};

/** How many layers the present entry is for. */
const depth = (): number => (history.state as { layer?: number } | null)?.layer ?? 0;

function settle(): void {
  if (isMoving) return;
  if (next && depth() === 0) {
    if (next.replaces) history.replaceState(null, "", next.path);
    else history.pushState(null, "", next.path);
    next = null;
  }
  const wanted = next ? 0 : layers.length;
  if (depth() > wanted) {
    isMoving = true;
    history.go(wanted - depth());
  }
  while (depth() < wanted) history.pushState({ layer: depth() + 1 }, "");
}

function popped(): void {
  if (isMoving) {
    isMoving = false;
  } else {
    // The topmost first. What closes takes itself from the list, so that goes before.
    for (const layer of layers.splice(depth()).reverse()) layer.leave();
    if (depth() === 0) arrived();
  }
  settle();
}

addEventListener("popstate", popped);
settle();

/** Hear that the browser has gone to another address of the page. */
export function hearOfArriving(hear: () => void): void {
  arrived = hear;
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

/** The path of the page, also while the browser is on its way there. */
export const pathOfPage = (): string => next?.path ?? location.pathname;

/** Give the page another address: a new entry, or another address for the present one. */
export function moveTo(path: string, { replaces = false } = {}): void {
  next = { path, replaces: replaces || (next?.replaces ?? false) };
  settle();
}
