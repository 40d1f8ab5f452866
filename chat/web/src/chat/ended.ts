import { useEffect, useRef, useState } from "preact/hooks";

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
