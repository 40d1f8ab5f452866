/** Buds that are named for one message, in place of the conversation's. */
import { effect, signal } from "@preact/signals";
import { noteAsked, notedAsked } from "../../browser/last-chat";
import { buds } from "../../store/buds";
import { whose } from "../../store/temporary";
import choosing from "../../texts/choosing";
import type { Bud } from "../../wire";
import { answeringBud } from "./choice";

/** The bud that each draft names, by its id. */
const named = signal(notedAsked<string>(whose, "bud"));
effect(() => noteAsked(whose, "bud", named.value));

/** The bud that the next message is for; undefined: the conversation's. */
export const mentionOf = (draft: string): Bud | undefined =>
  buds.value?.find((bud) => bud.id === named.value[draft]);

/** Ask this bud; the one that answers anyway needs no mention. */
export function mention(draft: string, bud: Bud): void {
  if (bud.id === answeringBud.value?.id) dropMention(draft);
  else named.value = { ...named.value, [draft]: bud.id };
}

export function dropMention(draft: string): void {
  const { [draft]: _, ...others } = named.value;
  named.value = others;
}

/** Name and avatar of a bud that was named; of one that is gone or archived, words for that. */
export function namedBud(id: string): { name: string; avatar: string } {
  const bud = buds.value?.find((one) => one.id === id);
  return { name: bud?.name ?? choosing.anotherBud, avatar: bud?.avatar || "🌱" };
}
