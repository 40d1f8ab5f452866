import { useId, useState } from "preact/hooks";
import { toast } from "../app/toasts";
import { moment } from "../formats";
import { decideRequest } from "../store/commands";
import common from "../texts/common";
import { filled } from "../texts/language";
import t from "../texts/waiting";
import { Icon } from "../ui/icon";
import { toComposer } from "../ui/refocus";
import { ago, useNow } from "../ui/time";
import type { RequestToDecide } from "../wire";
import { loadWaiting } from "./state";

/** As the service has it. */
const LONGEST_NOTE = 500;

/** What a member asks for: granted or declined with a note, and the way to where it is set up. */
export function RequestCard({ request }: { request: RequestToDecide }) {
  const id = useId();
  const [note, setNote] = useState("");
  const [isBusy, setBusy] = useState(false);
  const now = useNow(60_000);
  const decide = async (isGranted: boolean) => {
    if (isBusy) return;
    setBusy(true);
    const worked = await decideRequest(request.id, isGranted, note.trim());
    setBusy(false);
    if (worked) {
      toast(isGranted ? t.wasGranted(request.requester) : t.wasDeclined(request.requester), "ok");
      toComposer();
    }
    // Somebody else may have been quicker.
    void loadWaiting();
  };
  return (
    <div role="group" class="approval" data-kind="input" aria-labelledby={`${id}-title`}>
      <div class="approval-head flex items-start gap-3">
        <span class="approval-icon">
          <Icon name="question" />
        </span>
        <div class="min-w-0 grow">
          <h3 id={`${id}-title`} class="text-[0.9375rem] break-words">
            {filled(t.asksFor, {
              person: request.requester,
              name: <strong class="font-semibold">{request.name}</strong>,
            })}
          </h3>
          <p class="text-sm text-(--quiet) break-words">
            {t.kinds[request.kind]} · {request.requester_email} ·{" "}
            <time dateTime={request.created_at} title={moment(request.created_at)}>
              {ago(now - Date.parse(request.created_at))}
            </time>
          </p>
        </div>
      </div>
      <p class="input-message">{request.reason}</p>
      <form
        class="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          void decide(true);
        }}
      >
        <div class="field">
          <label for={`${id}-note`}>
            {t.note}
            <span class="optional">{common.optional}</span>
          </label>
          <input
            id={`${id}-note`}
            type="text"
            maxLength={LONGEST_NOTE}
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
          {request.kind !== "other" && <p class="help">{t.grantOnlyTells}</p>}
        </div>
        <div class="flex flex-wrap gap-2">
          <button type="submit" class="btn btn-primary btn-sm" disabled={isBusy}>
            <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
            {t.grant}
          </button>
          <button
            type="button"
            class="btn btn-outline-quiet btn-sm"
            disabled={isBusy}
            onClick={() => decide(false)}
          >
            {t.decline}
          </button>
          <a class="btn btn-quiet btn-sm" href={request.path_to_set_up}>
            {t.setUp[request.kind]}
          </a>
        </div>
      </form>
    </div>
  );
}
