import { useState } from "preact/hooks";
import { argumentsOf, hasOtherArguments, leaveArguments } from "../chat/edited-arguments";
import { decide } from "../commands";
import t from "../texts/waiting";
import { Icon } from "../ui/icon";
import { toComposer } from "../ui/refocus";
import type { ToolCall } from "../wire";
import { loadWaiting } from "./state";

/** Decides about all calls of a step that wait. */
export function DecideAll({ calls }: { calls: readonly ToolCall[] }) {
  const [isBusy, setBusy] = useState(false);
  if (calls.length < 2) return null;
  /** With the arguments as the person has changed them, if they have. */
  const one = async (call: ToolCall, decision: "approve" | "refuse") => {
    const args = decision === "approve" && hasOtherArguments(call) ? argumentsOf(call) : null;
    const isDone = await decide(call.id, decision, args === null ? {} : { arguments: args });
    if (isDone) leaveArguments(call);
    return isDone;
  };
  const isUnfit = calls.some((call) => argumentsOf(call) === null);
  const all = async (decision: "approve" | "refuse") => {
    setBusy(true);
    let isDone = true;
    for (const call of calls) isDone &&= await one(call, decision);
    if (isDone) toComposer();
    setBusy(false);
    void loadWaiting();
  };
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
      <button type="button" class="btn btn-sm btn-quiet" disabled={isBusy} onClick={() => all("refuse")}>
        {t.refuseAll(calls.length)}
      </button>
    </div>
  );
}
