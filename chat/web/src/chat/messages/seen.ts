/** Tells the server that an answer was seen, so that no device shows it as new and nobody is mailed about it. */
import { useEffect } from "preact/hooks";
import { socketStatus } from "../../app/connection";
import { wanted } from "../../app/place";
import { markSeen } from "../../store/commands";
import { openState } from "../../store/open-conversation";

/** How long the end of an answer stands on the screen until it counts as seen. */
const SETTLE_MS = 500;

export function useSeen(isAway: boolean): void {
  const conversation = openState.value?.conversation;
  const id = conversation?.id;
  const until = conversation?.unseen_answer_at;
  const isAtEnd = !isAway && wanted.value === null && socketStatus.value === "open";
  useEffect(() => {
    if (!id || !until || !isAtEnd) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") timer = setTimeout(() => markSeen(id, until), SETTLE_MS);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [id, until, isAtEnd]);
}
