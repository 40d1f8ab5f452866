/** Messages that wait for the running answer: in order, and still to be changed. */
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { place } from "../../app/place";
import { toast } from "../../app/toasts";
import { editQueued, removeQueued, sendQueuedNow } from "../../store/commands";
import { draftOf, keepDraft } from "../../store/draft";
import { openState, runningTurn } from "../../store/open-conversation";
import t from "../../texts/chat";
import choosing from "../../texts/choosing";
import common from "../../texts/common";
import comparing from "../../texts/comparing";
import { Icon } from "../../ui/icon";
import { useRefocus } from "../../ui/refocus";
import type { QueuedMessage } from "../../wire";
import { namedBud } from "./mentions";

/** A waiting message that is being changed. */
interface Edited {
  conversation_id: string;
  before: string;
  text: string;
  isSaving: boolean;
}

/** By their ids. They outlive that another chat is shown for a while. */
const edited = signal<Readonly<Record<string, Edited>>>({});

function edit(id: string, change: Partial<Edited>): void {
  const known = edited.peek()[id];
  if (known) edited.value = { ...edited.peek(), [id]: { ...known, ...change } };
}

function stopEditing(id: string): void {
  const { [id]: _, ...others } = edited.peek();
  edited.value = others;
}

/** What was typed for messages that have been sent or removed meanwhile goes into the message field, so that it is not lost. */
function giveBack(conversationId: string, rows: readonly QueuedMessage[]): void {
  for (const [id, { conversation_id, before, text, isSaving }] of Object.entries(edited.peek())) {
    if (conversation_id !== conversationId || isSaving || rows.some((row) => row.id === id)) continue;
    stopEditing(id);
    if (text.trim() === "" || text.trim() === before) continue;
    keepDraft(conversationId, [draftOf(conversationId), text.trim()].filter(Boolean).join("\n\n"));
    toast(t.queuedGone);
  }
}

function RowEditor({ row, text }: { row: QueuedMessage; text: string }) {
  const form = useRef<HTMLFormElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useRefocus(form);
  useLayoutEffect(() => {
    if (text === row.text) field.current?.focus();
  }, []);
  return (
    <li class="queued-row">
      <form
        ref={form}
        class="flex grow items-start gap-2"
        onSubmit={async (event) => {
          event.preventDefault();
          if (!text.trim()) return;
          edit(row.id, { isSaving: true });
          if (await editQueued(row.id, text.trim())) stopEditing(row.id);
          else edit(row.id, { isSaving: false });
        }}
      >
        <label class="sr-only" for={`queued-${row.id}`}>
          {t.queuedMessage}
        </label>
        <textarea
          ref={field}
          id={`queued-${row.id}`}
          class="grow"
          rows={2}
          value={text}
          onInput={(event) => edit(row.id, { text: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Escape") stopEditing(row.id);
          }}
        />
        <button type="submit" class="btn btn-xs btn-primary" disabled={text.trim() === "" || isShutOut.value}>
          {common.save}
        </button>
        <button type="button" class="btn btn-xs btn-quiet" onClick={() => stopEditing(row.id)}>
          {common.cancel}
        </button>
      </form>
    </li>
  );
}

function Row({ row }: { row: QueuedMessage }) {
  const isRunning = runningTurn.value !== null;
  const draft = edited.value[row.id];
  if (draft) return <RowEditor row={row} text={draft.text} />;
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
            disabled={isShutOut.value}
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
            onClick={() => {
              const conversation_id = place.value ?? "";
              const begun = { conversation_id, before: row.text, text: row.text, isSaving: false };
              edited.value = { ...edited.value, [row.id]: begun };
            }}
          >
            <Icon name="pencil" />
          </button>
          <button
            type="button"
            class="copy-button"
            disabled={isShutOut.value}
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

/** What becomes of these waiting messages. */
function becomes(rows: readonly QueuedMessage[]): string {
  const held = rows[0]?.held_after;
  if (!held && runningTurn.value !== null) return t.queuedSoon;
  const end = held ?? openState.value?.turns.at(-1)?.status;
  return end === "cancelled" ? t.queuedStopped : t.queuedHeld;
}

export function QueuedMessages() {
  const state = openState.value;
  const rows = state?.queue ?? [];
  const isKnown = state !== null && state.seq !== null;
  useEffect(() => {
    if (isKnown) giveBack(state.id, rows);
  }, [isKnown, state?.id, state?.queue, edited.value]);
  if (rows.length === 0) return null;
  const parts = Map.groupBy(rows, (row) => row.held_after);
  return (
    <section class="queued" aria-label={t.queued}>
      {[...parts].map(([end, part]) => (
        <div key={end}>
          <p class="text-xs text-(--quiet)">{becomes(part)}</p>
          <ol>
            {part.map((row) => (
              <Row key={row.id} row={row} />
            ))}
          </ol>
        </div>
      ))}
    </section>
  );
}
