/** Goes to a message that was looked for: loads what is between, shows its branch, scrolls there and marks it. */
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { loadOlder, openState, runningTurn, toast, wanted } from "../app";
import { showBranch } from "../commands";
import { pathTo } from "../store/paths";
import { isShown } from "../store/timeline";
import t from "../texts/chat";

const MARKED_MS = 2_500;
/** How long the branch of a message may take to come. */
const ARRIVAL_MS = 15_000;
/** Parts of a conversation that are loaded on the way; 100 messages each. */
const MOST_PARTS = 200;

/** Resolves when the message is on the shown path, or after a while. */
function arrival(id: string): Promise<void> {
  return new Promise((resolve) => {
    const ended = () => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(ended, ARRIVAL_MS);
    const stop = openState.subscribe((state) => {
      if (state && isShown(state, id)) queueMicrotask(ended);
    });
  });
}

async function find(id: string): Promise<boolean> {
  let hasShown = false;
  for (let parts = 0; parts < MOST_PARTS && wanted.value === id; parts += 1) {
    const state = openState.value;
    if (!state?.conversation) return false;
    const path = pathTo(state.messages, state.conversation.leaf_id);
    if (isShown(state, id)) return true;
    const first = path[0];
    if (first && first.parent_id !== null) {
      if (await loadOlder(first)) return false;
    } else if (hasShown || runningTurn.value !== null || !(await showBranch(id))) return false;
    else {
      hasShown = true;
      await arrival(id);
    }
  }
  return false;
}

export function useReveal(scroller: RefObject<HTMLElement | null>): void {
  const id = wanted.value;
  const isLoaded = openState.value?.seq != null;
  useEffect(() => {
    if (!id || !isLoaded) return;
    void find(id).then((isFound) => {
      if (wanted.value !== id) return;
      wanted.value = null;
      if (!isFound) toast(t.notFoundHere);
      // After it has been drawn.
      else setTimeout(() => mark(scroller.current, id), 50);
    });
  }, [id, isLoaded]);
}

function mark(box: HTMLElement | null, id: string): void {
  const element = box?.querySelector(`[data-messages~="${id}"]`);
  if (!element) return;
  element.scrollIntoView({ block: "start" });
  element.setAttribute("data-found", "");
  setTimeout(() => element.removeAttribute("data-found"), MARKED_MS);
}
