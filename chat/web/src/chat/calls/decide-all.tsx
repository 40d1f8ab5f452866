import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { decide } from "../../store/commands";
import callTexts from "../../texts/calls";
import t from "../../texts/waiting";
import { Icon } from "../../ui/icon";
import { forgetKept, useKept } from "../../ui/kept";
import { toComposer } from "../../ui/refocus";
import { loadWaiting } from "../../waiting/state";
import type { ToolCall } from "../../wire";
import { argumentsOf, hasOtherArguments, leaveArguments } from "./edited-arguments";
import { RefusalReason } from "./refusal-reason";

/** Decides about all calls of a step that wait. */
export function DecideAll({ calls }: { calls: readonly ToolCall[] }) {
  const id = useId();
  const [isBusy, setBusy] = useState(false);
  const kept = `refusal.all.${calls[0]?.id ?? ""}`;
  /** Null: nobody is refusing them. */
  const [reason, setReason] = useKept<string | null>(kept, () => null);
  const note = useRef<HTMLInputElement>(null);
  const isRefusing = reason !== null;
  const wasRefusing = useRef(isRefusing);
  useLayoutEffect(() => {
    if (isRefusing && !wasRefusing.current) note.current?.focus();
    wasRefusing.current = isRefusing;
  }, [isRefusing]);
  if (calls.length < 2 || isShutOut.value) return null;
  /** With the arguments as the person has changed them, or why not. */
  const one = async (call: ToolCall, decision: "approve" | "refuse", why: string) => {
    const args = decision === "approve" && hasOtherArguments(call) ? argumentsOf(call) : null;
    const extra = { ...(args !== null && { arguments: args }), ...(why && { note: why }) };
    const isDone = await decide(call.id, decision, extra);
    if (isDone) {
      leaveArguments(call);
      forgetKept(`refusal.${call.id}`);
    }
    return isDone;
  };
  const isUnfit = calls.some((call) => argumentsOf(call) === null);
  const all = async (decision: "approve" | "refuse", why = "") => {
    setBusy(true);
    let isDone = true;
    for (const call of calls) isDone &&= await one(call, decision, why);
    if (isDone) {
      forgetKept(kept);
      toComposer();
    }
    setBusy(false);
    void loadWaiting();
  };
  if (isRefusing) {
    return (
      <form
        class="grid gap-2"
        aria-label={t.refuseAll(calls.length)}
        onSubmit={(event) => {
          event.preventDefault();
          void all("refuse", reason.trim());
        }}
      >
        <RefusalReason id={`${id}-note`} field={note} reason={reason} onReason={setReason} />
        <div class="flex flex-wrap gap-2">
          <button type="submit" class="btn btn-error btn-sm" disabled={isBusy}>
            {t.refuseAll(calls.length)}
          </button>
          <button
            type="button"
            class="btn btn-quiet btn-sm"
            disabled={isBusy}
            onClick={() => setReason(null)}
          >
            {callTexts.back}
          </button>
        </div>
      </form>
    );
  }
  return (
    <div class="decide-all">
      <span class="grow">{t.step(calls.length)}</span>
      <button
        type="button"
        class="btn btn-sm btn-outline-quiet"
        disabled={isBusy || isUnfit}
        title={isUnfit ? t.unfit : undefined}
        onClick={() => all("approve")}
      >
        <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
        {calls.some(hasOtherArguments) ? t.allowAllChanged(calls.length) : t.allowAll(calls.length)}
      </button>
      <button type="button" class="btn btn-sm btn-quiet" disabled={isBusy} onClick={() => setReason("")}>
        {t.refuseAllMore(calls.length)}
      </button>
    </div>
  );
}
