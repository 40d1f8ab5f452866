import { useId, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { place } from "../../app/place";
import { hasIcon, ServerTile } from "../../app/server-tile";
import { FileOfCall } from "../../artifacts/button";
import { moment } from "../../formats";
import { askAlways } from "../../store/commands";
import { openInputRequests, openProgress, waiting } from "../../store/open-conversation";
import t from "../../texts/calls";
import common from "../../texts/common";
import { filled } from "../../texts/language";
import { Icon, type IconName } from "../../ui/icon";
import { JsonView } from "../../ui/json-tree";
import { ago, duration, useNow } from "../../ui/time";
import { CALL_IS_ACTIVE, type ToolCall } from "../../wire";
import { ApprovalCard } from "./approval-card";
import { sameJson } from "./arguments";
import { Badges } from "./badges";
import { DecideAll } from "./decide-all";
import { AnsweredInput, InputCard } from "./input-card";
import { Result } from "./result";
import { UnknownCard } from "./unknown-card";

const FACES: Record<ToolCall["status"], { icon: IconName; tone: string }> = {
  queued: { icon: "clock", tone: "muted" },
  waiting_for_approval: { icon: "hand", tone: "warn" },
  waiting_for_input: { icon: "question", tone: "warn" },
  running: { icon: "loader", tone: "info" },
  succeeded: { icon: "circleCheck", tone: "ok" },
  failed: { icon: "circleX", tone: "bad" },
  refused: { icon: "circleX", tone: "warn" },
  cancelled: { icon: "close", tone: "muted" },
  outcome_unknown: { icon: "question", tone: "warn" },
  marked_done: { icon: "circleCheck", tone: "ok" },
  given_up: { icon: "circleX", tone: "muted" },
  repeated: { icon: "refresh", tone: "muted" },
};

function Elapsed({ call }: { call: ToolCall }) {
  const isRunning = call.status === "running" && call.started_at !== null;
  const now = useNow(500, isRunning);
  if (isRunning && call.started_at) return <>{duration(now - Date.parse(call.started_at))}</>;
  return call.duration_ms === null ? null : <>{duration(call.duration_ms)}</>;
}

function ProgressLine({ call }: { call: ToolCall }) {
  const progress = openProgress.value[call.id];
  if (call.status !== "running" || !progress) return null;
  const { total, message } = progress;
  return (
    <div class="grid gap-1 px-3 pb-2.5 text-xs text-(--quiet)">
      {total ? (
        <progress class="progress h-1.5" value={progress.progress} max={total} aria-label={t.progress} />
      ) : (
        <progress class="progress h-1.5" aria-label={t.working} />
      )}
      <span class="break-words">
        {[message, total ? t.percent(Math.round((progress.progress / total) * 100)) : null]
          .filter(Boolean)
          .join(" · ")}
      </span>
    </div>
  );
}

/** A result that is given again instead of asking the server once more. */
function CachedTag({ at }: { at: string }) {
  const now = useNow(30_000);
  return (
    <span class="tag" data-tone="muted" title={t.cachedTitle(moment(at))}>
      <Icon name="clock" />
      {t.cached(ago(now - Date.parse(at)))}
    </span>
  );
}

/** What went wrong, for whoever reads the chat: the call's own words of a refusal are for the model. */
function faultOf(call: ToolCall): string | null {
  if (call.status !== "refused" || call.approval?.decision !== "refused") return call.error;
  return call.approval.note ? t.refusedBecause(call.approval.note) : t.refusedCall;
}

function Decision({ call }: { call: ToolCall }) {
  const { approval } = call;
  if (!approval?.decision) return null;
  const { decided_by: person, decided_at, edited, note } = approval;
  const isApproved = approval.decision === "approved";
  const what = person
    ? isApproved
      ? t.approvedBy(person)
      : t.refusedBy(person)
    : isApproved
      ? t.approved
      : t.refused;
  const words = [what, decided_at && moment(decided_at), edited && t.changedArguments].filter(Boolean);
  return (
    <p class="text-sm">
      {words.join(", ")}
      {note && t.quoted(note)}
    </p>
  );
}

function Details({ call }: { call: ToolCall }) {
  const hasResult = call.result !== null || call.error !== null;
  const [tab, setTab] = useState<"arguments" | "result">(hasResult ? "result" : "arguments");
  const wasEdited = call.approval?.edited && !sameJson(call.arguments, call.proposed_arguments);
  return (
    <div class="tool-details">
      <div class="flex flex-wrap items-center gap-1.5">
        <Badges annotations={call.annotations} />
      </div>
      <Decision call={call} />
      <div class="theme-choice w-fit" role="group" aria-label={common.show}>
        <button type="button" aria-pressed={tab === "arguments"} onClick={() => setTab("arguments")}>
          {t.arguments}
        </button>
        <button
          type="button"
          aria-pressed={tab === "result"}
          disabled={!hasResult}
          onClick={() => setTab("result")}
        >
          {t.result}
        </button>
      </div>
      {tab === "arguments" ? (
        <>
          <JsonView value={call.arguments} empty={t.noArguments} />
          {wasEdited && (
            <details>
              <summary class="link-quiet text-xs">{t.proposed}</summary>
              <div class="mt-2">
                <JsonView value={call.proposed_arguments} empty={t.noArguments} />
              </div>
            </details>
          )}
        </>
      ) : (
        <>
          {call.error && (
            <div class="notice" data-tone={call.status === "refused" ? "warn" : "bad"}>
              <Icon name="alert" />
              <span>{faultOf(call)}</span>
            </div>
          )}
          {call.result && (
            <Result
              content={call.result.content}
              truncated={call.result.truncated}
              structured={call.result.structured}
              structuredProblem={call.result.structured_problem}
              origin={
                call.server?.id && place.value
                  ? { conversationId: place.value, server: { ...call.server, id: call.server.id } }
                  : undefined
              }
            />
          )}
        </>
      )}
      <AskAlways call={call} />
      <p class="text-xs text-(--quiet)">
        {filled(t.id, { id: <code class="break-all">{call.id}</code> })}{" "}
        {call.started_at && t.started(moment(call.started_at))}{" "}
        {boot.urls.audit && (
          <a class="link-brand" href={`${boot.urls.audit}calls/${call.id}/`}>
            {t.inLog}
          </a>
        )}
      </p>
    </div>
  );
}

/** Of a call that ran by itself: from now on its tool asks. */
function AskAlways({ call }: { call: ToolCall }) {
  const [isDone, setDone] = useState(false);
  const tool = call.tool.id;
  if (call.builtin || tool === null || call.approval !== null || call.status !== "succeeded") return null;
  if (isDone)
    return (
      <p class="text-sm" role="status">
        <a class="link-brand" href={boot.urls.permissions}>
          {t.asksAlwaysNow}
        </a>
      </p>
    );
  return (
    <button
      type="button"
      class="btn btn-outline-quiet btn-xs w-fit"
      onClick={async () => setDone(await askAlways(tool))}
    >
      <Icon name="hand" />
      {t.asksAlways}
    </button>
  );
}

function ToolCallCard({ call }: { call: ToolCall }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  if (call.status === "waiting_for_approval") return <ApprovalCard call={call} />;
  if (waiting.value.some((one) => one.id === call.id && one.status === "outcome_unknown")) {
    return <UnknownCard call={call} />;
  }
  const status = call.status in FACES ? call.status : "outcome_unknown";
  const face = FACES[status];
  return (
    <article class="tool-card" aria-label={t.call(call.tool.title || call.tool.name)}>
      <button
        type="button"
        class="tool-line"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {call.server?.id && hasIcon(call.server.id) ? (
          <ServerTile id={call.server.id} name={call.server.name} />
        ) : (
          <Icon name="wrench" class="text-(--quiet)" />
        )}
        <span class="min-w-0 grow truncate text-left">
          {call.server && <span class="text-(--quiet)">{call.server.name} · </span>}
          <span class="font-medium">{call.tool.title || call.tool.name}</span>
        </span>
        <span class="tag" data-tone={face.tone}>
          <Icon name={face.icon} class={call.status === "running" ? "animate-spin" : ""} />
          {t.states[status]}
        </span>
        {call.cached_at && <CachedTag at={call.cached_at} />}
        <span class="tool-time">
          <Elapsed call={call} />
        </span>
        <Icon name={isOpen ? "chevronDown" : "chevronRight"} class="text-(--quiet)" />
      </button>
      <ProgressLine call={call} />
      {!isOpen && call.error && call.status !== "succeeded" && (
        <p class="tool-error" data-tone={face.tone}>
          {faultOf(call)}
        </p>
      )}
      <FileOfCall call={call} />
      <Asked call={call} />
      <div id={id}>{isOpen && <Details call={call} />}</div>
    </article>
  );
}

/** What the server asked during this call: open questions as cards, answered ones as what was said. */
function Asked({ call }: { call: ToolCall }) {
  const requests = openInputRequests.value.filter((request) => request.call_id === call.id);
  if (requests.length === 0) return null;
  return (
    <div class="tool-asked">
      {requests.map((request) =>
        request.status === "pending" ? (
          <InputCard key={request.id} request={request} />
        ) : (
          <AnsweredInput key={request.id} request={request} />
        ),
      )}
    </div>
  );
}

/** Several calls in a row fold under one line as soon as none of them needs watching. */
export function ToolCalls({ calls }: { calls: ToolCall[] }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const asks = new Set(waiting.value.map((call) => call.id));
  const isActive = calls.some((call) => CALL_IS_ACTIVE.has(call.status) || asks.has(call.id));
  if (calls.length === 1 || isActive) {
    return (
      <div class="grid gap-2">
        <DecideAll
          calls={calls.filter(
            (call) => call.status === "waiting_for_approval" && !call.approval?.needs_second_person,
          )}
        />
        {calls.map((call) => (
          <ToolCallCard key={call.id} call={call} />
        ))}
      </div>
    );
  }
  const refused = calls.filter((call) => call.status === "refused").length;
  const failed = calls.filter((call) => call.status !== "succeeded").length - refused;
  const words = refused < calls.length ? t.called(calls.length - refused) : t.notCalled(refused);
  const spent = calls.reduce((sum, call) => sum + (call.duration_ms ?? 0), 0);
  return (
    <div class="grid gap-2">
      <button
        type="button"
        class="tool-card tool-line"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="wrench" class="text-(--quiet)" />
        <span class="min-w-0 grow truncate text-left font-medium">{words}</span>
        {refused > 0 && (
          <span class="tag" data-tone="muted">
            {t.countRefused(refused)}
          </span>
        )}
        {failed > 0 ? (
          <span class="tag" data-tone="warn">
            {t.notSuccessful(failed)}
          </span>
        ) : (
          refused < calls.length && (
            <span class="tag" data-tone="ok">
              <Icon name="circleCheck" />
              {t.states.succeeded}
            </span>
          )
        )}
        {refused < calls.length && <span class="tool-time">{duration(spent)}</span>}
        <Icon name={isOpen ? "chevronDown" : "chevronRight"} class="text-(--quiet)" />
      </button>
      <div id={id} class={isOpen ? "grid gap-2 pl-3 border-l border-(--line)" : ""}>
        {isOpen && calls.map((call) => <ToolCallCard key={call.id} call={call} />)}
      </div>
    </div>
  );
}
