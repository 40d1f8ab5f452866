/** Tokens and their cost in words. */
import { decimal, plain, whole } from "../formats";
import t from "../texts/chat";
import type { Usage } from "../wire";

export const short = (count: number): string =>
  count < 10_000 ? whole(count) : t.thousands(whole(Math.round(count / 1000)));

/** A decimal number as text: two places, or more where it is small. */
function money(cost: string): string {
  const value = Number(cost);
  return value === 0 || value >= 0.01 ? decimal(value, 2) : plain(value.toPrecision(2));
}

export function usageWords(usage: Usage): string {
  const read = short(usage.prompt_tokens);
  const parts = [
    usage.cached_tokens > 0 ? t.tokensInCached(read, short(usage.cached_tokens)) : t.tokensIn(read),
    t.tokensOut(short(usage.completion_tokens)),
  ];
  if (usage.cost !== null) parts.push(t.cost(money(usage.cost)));
  return parts.join(" · ");
}
