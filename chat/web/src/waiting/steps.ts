/** What waits, sorted by the steps of answers that it belongs to; and what is new of it. Pure. */
import type { ToolCall, Waiting } from "../wire";

export interface Step {
  key: string;
  /** Null: it belongs to none. */
  conversation: Waiting["conversation"];
  messageId: string | null;
  items: Waiting[];
}

/** The calls of one message are one step; whatever belongs to no message is one of its own. */
export function stepsOf(items: readonly Waiting[]): Step[] {
  const steps = new Map<string, Step>();
  for (const item of items) {
    const key = item.message_id ?? idOf(item);
    const step = steps.get(key);
    if (step) step.items.push(item);
    else
      steps.set(key, {
        key,
        conversation: item.conversation,
        messageId: item.message_id,
        items: [item],
      });
  }
  return [...steps.values()];
}

export const idOf = (item: Waiting): string =>
  (item.tool_call ?? item.input_request ?? item.access_request)?.id ?? "";

/** Whether a person is asked what became of it: its connection was lost. */
export const isUnknown = (call: ToolCall): boolean => call.status === "outcome_unknown";

/** The calls that can be decided together. */
export const approvalsOf = (items: readonly Waiting[]): ToolCall[] =>
  items.flatMap(({ tool_call: call, asked_by }) => (call && !isUnknown(call) && !asked_by ? [call] : []));

export function newOf(before: readonly Waiting[] | null, now: readonly Waiting[]): Waiting[] {
  if (before === null) return [];
  const known = new Set(before.map(idOf));
  return now.filter((item) => !known.has(idOf(item)));
}
