import { isShutOut, socketStatus } from "../../app/connection";
import type { Outgoing } from "../../store/conversation";
import t from "../../texts/chat";
import choosing from "../../texts/choosing";
import common from "../../texts/common";
import comparing from "../../texts/comparing";
import { namedBud } from "../composer/mentions";
import { discard, resend, takeBack } from "../sending";
import { Bubble } from "./bubble";

/** What is under way with it. The page tries no further where its person may not enter. */
function stateInWords(): string {
  if (socketStatus.value === "open") return t.sending;
  return isShutOut.value ? t.sendsOnReturn : t.sendsLater;
}

/** A message that the server has not shown back. */
export function OutgoingMessage({ outgoing }: { outgoing: Outgoing }) {
  return (
    <article class="user-message" aria-label={t.you}>
      <h2 class="sr-only">{t.youSaid}</h2>
      {outgoing.text && <Bubble id={outgoing.client_id} text={outgoing.text} isPending />}
      {outgoing.bud_id && (
        <p class="text-right text-xs text-(--quiet)">{choosing.forBud(namedBud(outgoing.bud_id).name)}</p>
      )}
      {outgoing.compare?.length > 0 && (
        <p class="text-right text-xs text-(--quiet)">
          {comparing.sent(outgoing.compare.map((one) => one.name))}
        </p>
      )}
      {outgoing.attachments.length > 0 && (
        <p class="text-right text-xs text-(--quiet)">
          {t.withAttachments(outgoing.attachments.map((one) => one.title).join(", "))}
        </p>
      )}
      {outgoing.error ? (
        <div class="flex flex-wrap items-center justify-end gap-2 text-xs" role="alert">
          <span class="field-error">{t.notSent(outgoing.error)}</span>
          <button
            type="button"
            class="btn btn-xs btn-outline-quiet"
            onClick={() => resend(outgoing.client_id)}
          >
            {t.sendAgain}
          </button>
          <button type="button" class="btn btn-xs btn-outline-quiet" onClick={() => takeBack(outgoing)}>
            {common.edit}
          </button>
          <button type="button" class="btn btn-xs btn-quiet" onClick={() => discard(outgoing.client_id)}>
            {common.discard}
          </button>
        </div>
      ) : (
        <p class="text-right text-xs text-(--quiet)">{stateInWords()}</p>
      )}
    </article>
  );
}
