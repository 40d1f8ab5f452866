/** Goes to a message that was looked for: shows its branch and the part that begins with it, and marks it. */
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { wanted } from "../../app/place";
import { messageOf, toast } from "../../app/toasts";
import { showBranch } from "../../store/commands";
import { isBusyOrShut, openState, showFrom } from "../../store/open-conversation";
import { isShown } from "../../store/timeline";
import t from "../../texts/chat";
import { unfold } from "./bubble";

const MARKED_MS = 2_500;
/** How long the branch of a message may take to come. */
const ARRIVAL_MS = 15_000;

/** Resolves when another path than this one has been read, or after a while. */
function arrival(leafId: string | null): Promise<void> {
  return new Promise((resolve) => {
    const ended = () => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(ended, ARRIVAL_MS);
    const stop = openState.subscribe((state) => {
      if (state && !state.stale && state.conversation?.leaf_id !== leafId) queueMicrotask(ended);
    });
  });
}

/** Why the message cannot be shown; empty: it is. */
async function find(id: string): Promise<string> {
  const state = openState.value;
  if (!state?.conversation) return t.notFoundHere;
  if (isShown(state, id)) return "";
  try {
    if (await showFrom(state.id, id)) return "";
    if (isBusyOrShut.value || !(await showBranch(id))) return t.notFoundHere;
    await arrival(state.conversation.leaf_id);
    const isHere = openState.value && isShown(openState.value, id);
    return isHere || (await showFrom(state.id, id)) ? "" : t.notFoundHere;
  } catch (error) {
    return messageOf(error);
  }
}

export function useReveal(scroller: RefObject<HTMLElement | null>): void {
  const id = wanted.value;
  const isLoaded = openState.value?.seq != null;
  useEffect(() => {
    if (!id || !isLoaded) return;
    void find(id).then((problem) => {
      if (wanted.value !== id) return;
      wanted.value = null;
      if (!problem) unfold(id);
      if (problem) toast(problem);
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
