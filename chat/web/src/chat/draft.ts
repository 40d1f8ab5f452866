import { signal } from "@preact/signals";
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

/** Counts the drafts that were written from outside of their field. */
const written = signal(0);

function write(name: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), text);
  } catch {
    // A full or forbidden storage costs the draft on reload, nothing more.
  }
}

/** Put a text into a composer, whether or not it is on the page. */
export function keepDraft(name: string, text: string): void {
  write(name, text);
  written.value += 1;
}

/** What somebody was writing, kept in this browser until it is sent. */
export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => read(name));
  const count = written.value;
  // Read anew also when it was written from outside.
  useEffect(() => setText(read(name)), [name, count]);
  const change = useCallback(
    (next: string) => {
      setText(next);
      write(name, next);
    },
    [name],
  );
  return [text, change];
}
