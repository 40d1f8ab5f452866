/** A call whose connection was lost: what is known of it, and the person's word on what becomes of it. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { isFocusFree } from "../../app/focus";
import { moment } from "../../formats";
import { resolveCall } from "../../store/commands";
import t from "../../texts/calls";
import common from "../../texts/common";
import { filled } from "../../texts/language";
import { Icon } from "../../ui/icon";
import { JsonView } from "../../ui/json-tree";
import { forgetKept, useKept } from "../../ui/kept";
import { toComposer } from "../../ui/refocus";
import type { Resolution, ToolCall } from "../../wire";

export function UnknownCard({ call }: { call: ToolCall }) {
  const id = useId();
  const [note, setNote] = useKept(`found.${call.id}`, () => "");
  const card = useRef<HTMLDivElement>(null);
  const [isBusy, setBusy] = useState(false);
  const name = call.tool.title || call.tool.name;
  useEffect(() => {
    if (isFocusFree()) card.current?.focus({ preventScroll: true });
    card.current?.scrollIntoView({ block: "nearest" });
  }, []);
  const say = async (resolution: Resolution) => {
    setBusy(true);
    if (await resolveCall(call.id, resolution, note.trim())) {
      forgetKept(`found.${call.id}`);
      toComposer();
    } else setBusy(false);
  };
  return (
    <div
      role="group"
      ref={card}
      tabIndex={-1}
      class="approval"
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-why`}
    >
      <div class="approval-head flex items-start gap-2">
        <Icon name="question" class="text-(--color-warning)" />
        <div class="min-w-0 grow">
          <h3 id={`${id}-title`} class="font-semibold">
            {filled(t.tookEffectTitle, { tool: name })}
          </h3>
          {call.server && <p class="text-xs text-(--quiet)">{call.server.name}</p>}
        </div>
      </div>
      <p id={`${id}-why`} class="text-sm">
        {call.started_at ? t.connectionLostAt(moment(call.started_at)) : t.connectionLost}
      </p>
      {call.error && <p class="text-sm text-(--quiet)">{call.error}</p>}
      <details>
        <summary class="link-quiet text-xs">{t.sent}</summary>
        <div class="mt-2">
          <JsonView value={call.arguments} empty={t.noArguments} />
        </div>
      </details>
      <div class="field">
        <label for={`${id}-note`}>
          {t.foundWhat} <span class="optional">{common.optional}</span>
        </label>
        <input
          id={`${id}-note`}
          maxLength={500}
          autocomplete="off"
          value={note}
          onInput={(event) => setNote(event.currentTarget.value)}
        />
      </div>
      <div class="flex flex-wrap items-center gap-2">
        <button
          type="button"
          class="btn btn-primary btn-sm"
          disabled={isBusy || isShutOut.value}
          onClick={() => say("mark_done")}
        >
          <Icon name="check" />
          {t.tookEffect}
        </button>
        <button
          type="button"
          class="btn btn-outline-quiet btn-sm"
          disabled={isBusy || isShutOut.value}
          onClick={() => say("run_again")}
        >
          <Icon name="refresh" />
          {t.runAgain}
        </button>
        <button
          type="button"
          class="btn btn-outline-quiet btn-sm"
          disabled={isBusy || isShutOut.value}
          onClick={() => say("give_up")}
        >
          {t.giveUp}
        </button>
        {call.resolution?.due_at && (
          <span class="text-xs text-(--quiet)">{t.givenUpAt(moment(call.resolution.due_at))}</span>
        )}
      </div>
    </div>
  );
}
