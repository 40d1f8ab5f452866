/** Whom the next message of a draft asks: another bud, or several models side by side. */
import { buds } from "../../store/buds";
import type { Asked } from "../../store/conversation";
import { comparedBy, compareNext, dropCompared } from "./comparing";
import { dropMention, mention, mentionOf } from "./mentions";

export const askedBy = (draft: string): Asked => ({
  bud_id: mentionOf(draft)?.id ?? null,
  compare: comparedBy(draft),
});

export function dropAsked(draft: string): void {
  dropMention(draft);
  dropCompared(draft);
}

/** A message that was not taken stands in its field again: whom it asks does too, unless others were chosen meanwhile. */
export function askAgain(draft: string, { bud_id, compare }: Asked): void {
  const now = askedBy(draft);
  if (now.bud_id !== null || now.compare.length > 0) return;
  const bud = buds.value?.find((one) => one.id === bud_id);
  if (bud) mention(draft, bud);
  if (compare.length > 0) compareNext(draft, compare);
}
