/** Arguments of waiting calls that somebody changes: what is sent, whichever button approves the call. */
import { signal } from "@preact/signals";
import type { JsonObject, ToolCall } from "../../wire";
import { sameJson } from "./arguments";

/** By the ids of their calls; null: they do not fit as they stand. They outlive that another chat is shown for a while. */
const edited = signal<Readonly<Record<string, JsonObject | null>>>({});

export const isBeingEdited = (call: ToolCall): boolean => call.id in edited.value;

/** The arguments as they would be sent; null: they do not fit as they stand. */
export const argumentsOf = (call: ToolCall): JsonObject | null =>
  call.id in edited.value ? (edited.value[call.id] ?? null) : call.arguments;

/** Whether others would be sent than the assistant proposed. */
export function hasOtherArguments(call: ToolCall): boolean {
  const args = argumentsOf(call);
  return args !== null && !sameJson(args, call.arguments);
}

export function editArguments(call: ToolCall, args: JsonObject | null): void {
  edited.value = { ...edited.value, [call.id]: args };
}

/** Go back to what was proposed. */
export function leaveArguments(call: ToolCall): void {
  const { [call.id]: _, ...others } = edited.value;
  edited.value = others;
}
