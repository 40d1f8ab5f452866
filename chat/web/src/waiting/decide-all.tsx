import { useState } from "preact/hooks";
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
  const all = async (decision: "approve" | "refuse") => {
    setBusy(true);
    let isDone = true;
    for (const call of calls) isDone &&= await decide(call.id, decision);
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
        disabled={isBusy}
        onClick={() => all("approve")}
      >
        <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
        {t.allowAll(calls.length)}
      </button>
      <button type="button" class="btn btn-sm btn-quiet" disabled={isBusy} onClick={() => all("refuse")}>
        {t.refuseAll(calls.length)}
      </button>
    </div>
  );
}
