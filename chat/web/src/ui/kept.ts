/** What somebody types on a card stays while another chat is shown, and is the same wherever the card is drawn. */
import { signal } from "@preact/signals";

const kept = signal<ReadonlyMap<string, unknown>>(new Map());

/** A value that outlives its part of the page, by a name of its own; in this tab, until it is forgotten. */
export function useKept<Value>(name: string, initial: () => Value): [Value, (next: Value) => void] {
  const value = kept.value.has(name) ? (kept.value.get(name) as Value) : initial();
  const set = (next: Value) => {
    kept.value = new Map(kept.peek()).set(name, next);
  };
  return [value, set];
}

/** It was sent, or is wanted no longer. */
export function forgetKept(name: string): void {
  const next = new Map(kept.peek());
  if (next.delete(name)) kept.value = next;
}
