import { useEffect, useRef, useState } from "preact/hooks";
import type { TimelineItem } from "../../store/timeline";
import t from "../../texts/chat";
import { failureOf } from "./answer-body";

/** Whether an answer has ended since the conversation was opened: nobody who listens sees it. */
export function useEnded(id: string, isAnswering: boolean): boolean {
  const before = useRef({ id, isAnswering });
  const [ended, setEnded] = useState<string | null>(null);
  useEffect(() => {
    const was = before.current;
    before.current = { id, isAnswering };
    if (was.id === id && was.isAnswering && !isAnswering) setEnded(id);
  }, [id, isAnswering]);
  return ended === id;
}

/** How the newest answer ended, for those who listen. */
export function endInWords(items: readonly TimelineItem[]): string {
  const newest = items.at(-1);
  const turn = newest?.kind === "answer" ? newest.turn : null;
  return (turn && failureOf(turn)) || t.hasAnswered;
}
