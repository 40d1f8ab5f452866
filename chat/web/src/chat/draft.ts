import { useCallback, useEffect, useState } from "preact/hooks";
import { boot } from "../app";

const keyOf = (name: string): string => `trellis.draft.${boot.user.id}.${boot.workspace.slug}.${name}`;

function read(name: string): string {
  try {
    return localStorage.getItem(keyOf(name)) ?? "";
  } catch {
    return "";
  }
}

/** What somebody was writing, kept in this browser until it is sent. */
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => read(name));
  useEffect(() => setText(read(name)), [name]);
  const change = useCallback(
    (next: string) => {
      setText(next);
      try {
        if (next === "") localStorage.removeItem(keyOf(name));
        else localStorage.setItem(keyOf(name), next);
      } catch {
        // A full or forbidden storage costs the draft on reload, nothing more.
      }
    },
    [name],
  );
  return [text, change];
}
