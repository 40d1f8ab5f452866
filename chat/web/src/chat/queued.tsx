/** Messages that wait for the running answer: in order, and still to be changed. */
import { useState } from "preact/hooks";
import { openState, runningTurn } from "../app";
import { editQueued, removeQueued, sendQueuedNow } from "../commands";
import t from "../texts/chat";
import choosing from "../texts/choosing";
import common from "../texts/common";
import comparing from "../texts/comparing";
import { Icon } from "../ui/icon";
import type { QueuedMessage } from "../wire";
import { namedBud } from "./mentions";

function Row({ row }: { row: QueuedMessage }) {
  const [draft, setDraft] = useState<string | null>(null);
  const isRunning = runningTurn.value !== null;
  if (draft !== null) {
    return (
      <li class="queued-row">
        <form
          class="flex grow items-start gap-2"
          onSubmit={async (event) => {
            event.preventDefault();
            if (draft.trim() && (await editQueued(row.id, draft.trim()))) setDraft(null);
          }}
        >
          <label class="sr-only" for={`queued-${row.id}`}>
            {t.queuedMessage}
          </label>
          <textarea
            id={`queued-${row.id}`}
            class="grow"
            rows={2}
            autofocus
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") setDraft(null);
            }}
          />
          <button type="submit" class="btn btn-xs btn-primary" disabled={draft.trim() === ""}>
            {common.save}
          </button>
          <button type="button" class="btn btn-xs btn-quiet" onClick={() => setDraft(null)}>
            {common.cancel}
          </button>
        </form>
      </li>
    );
  }
  return (
    <li class="queued-row">
      <Icon name="clock" class="text-(--quiet)" />
      <span class="min-w-0 grow truncate" title={row.text}>
        {row.text}
        {row.bud_id && (
          <span class="text-xs text-(--quiet)"> {choosing.forBud(namedBud(row.bud_id).name)}</span>
        )}
        {row.compare.length > 0 && (
          <span class="text-xs text-(--quiet)"> {comparing.sent(row.compare.map((one) => one.name))}</span>
        )}
        {row.attachments.length > 0 && (
          <span class="text-xs text-(--quiet)"> {t.countAttached(row.attachments.length)}</span>
        )}
      </span>
      {row.is_next ? (
        <span class="text-xs text-(--quiet)">{t.queuedNext}</span>
      ) : (
        <>
          <button
            type="button"
            class="copy-button"
            title={isRunning ? t.interruptTitle : t.sendNowTitle}
            onClick={() => sendQueuedNow(row.id)}
          >
            <Icon name="arrowUp" />
            <span class="max-[30rem]:sr-only">{t.sendNow}</span>
          </button>
          <button
            type="button"
            class="copy-button"
            aria-label={t.editQueued}
            onClick={() => setDraft(row.text)}
          >
            <Icon name="pencil" />
          </button>
          <button
            type="button"
            class="copy-button"
            aria-label={t.removeQueued}
            onClick={() => removeQueued(row.id)}
          >
            <Icon name="trash" />
          </button>
        </>
      )}
    </li>
  );
}

export function QueuedMessages() {
  const rows = openState.value?.queue ?? [];
  if (rows.length === 0) return null;
  const isHeld = runningTurn.value === null;
  return (
    <section class="queued" aria-label={t.queued}>
      <p class="text-xs text-(--quiet)">{isHeld ? t.queuedHeld : t.queuedSoon}</p>
      <ol>
        {rows.map((row) => (
          <Row key={row.id} row={row} />
        ))}
      </ol>
    </section>
  );
}
