import { useEffect } from "preact/hooks";
import { boot } from "../app/boot";
import { conversationPath, go, reveal } from "../app/place";
import common from "../texts/common";
import t from "../texts/waiting";
import { Dialog } from "../ui/dialog";
import { canNotify, isBlocked, isNotifying, setNotifying } from "../waiting/notify";
import { RequestCard } from "../waiting/request-card";
import { loadWaiting, waitingItems, waitingProblem } from "../waiting/state";
import { approvalsOf, idOf, isUnknown, type Step, stepsOf } from "../waiting/steps";
import { ApprovalCard } from "./calls/approval-card";
import { DecideAll } from "./calls/decide-all";
import { InputCard } from "./calls/input-card";
import { UnknownCard } from "./calls/unknown-card";

function StepOf({ step, onClose }: { step: Step; onClose: () => void }) {
  const { conversation } = step;
  if (!conversation)
    return step.items.map(({ access_request: request, tool_call: call, asked_by }) =>
      call && asked_by ? (
        <ApprovalCard key={call.id} call={call} askedBy={asked_by} onDecided={() => void loadWaiting()} />
      ) : (
        request && <RequestCard key={request.id} request={request} />
      ),
    );
  const title = conversation.title || common.newChat;
  return (
    <div class="grid gap-2" role="group" aria-label={t.inChat(title)}>
      <div class="flex items-center gap-2 text-sm">
        <span aria-hidden="true">{conversation.avatar || "🌱"}</span>
        <h3 class="min-w-0 grow truncate text-sm">{title}</h3>
        <button
          type="button"
          class="btn btn-xs btn-quiet shrink-0"
          onClick={() => {
            onClose();
            go(conversationPath(conversation.id));
            if (step.messageId) reveal(step.messageId);
          }}
        >
          {t.goThere}
        </button>
      </div>
      <DecideAll calls={approvalsOf(step.items)} />
      {step.items.map((item) =>
        item.tool_call && isUnknown(item.tool_call) ? (
          <UnknownCard key={idOf(item)} call={item.tool_call} />
        ) : item.tool_call ? (
          <ApprovalCard key={idOf(item)} call={item.tool_call} />
        ) : (
          item.input_request && <InputCard key={idOf(item)} request={item.input_request} />
        ),
      )}
    </div>
  );
}

/** Everything that waits, in all conversations and of members: decided right here. */
export function WaitingDialog({ onClose }: { onClose: () => void }) {
  const steps = stepsOf(waitingItems.value ?? []);
  useEffect(() => void loadWaiting(), []);
  return (
    <Dialog title={t.title} onClose={onClose}>
      <div class="grid gap-5 p-5 pt-3" aria-busy={waitingItems.value === null}>
        {waitingProblem.value ? (
          <p class="text-sm" role="alert">
            {waitingProblem.value}
          </p>
        ) : (
          steps.length === 0 && (
            <p class="text-sm text-(--quiet)">{waitingItems.value ? t.nothing : common.loading}</p>
          )
        )}
        {steps.map((step) => (
          <StepOf key={step.key} step={step} onClose={onClose} />
        ))}
        <div class="field border-t border-(--line) pt-4">
          {canNotify && (
            <>
              <label class="check">
                <input
                  type="checkbox"
                  class="toggle toggle-sm toggle-primary"
                  role="switch"
                  checked={isNotifying.value}
                  onChange={async ({ currentTarget }) => {
                    await setNotifying(currentTarget.checked);
                    currentTarget.checked = isNotifying.value; // also where the browser said no
                  }}
                />
                <span>{t.tellMe}</span>
              </label>
              <p class="help" role="status">
                {isBlocked.value ? t.blocked : t.tellMeAbout}
              </p>
            </>
          )}
          <a class="link-brand justify-self-start text-sm" href={boot.urls.reminders}>
            {t.byMail}
          </a>
        </div>
      </div>
    </Dialog>
  );
}
