/** How a run of checks goes, and what came of each check. */
import { useEffect, useRef } from "preact/hooks";
import { renderText } from "../../markdown/render";
import { localTimes } from "../../pages/times";
import t from "../../texts/checks";
import common from "../../texts/common";
import { usageWords } from "../../ui/usage-words";
import type { CheckResult, CheckRun } from "../../wire";

export const TONES: Record<CheckResult["status"], string> = {
  waiting: "muted",
  running: "info",
  judging: "info",
  passed: "ok",
  failed: "bad",
  cancelled: "muted",
};

export function Result({
  result,
  mayRead,
  logUrl,
}: {
  result: CheckResult;
  mayRead: boolean;
  logUrl: string;
}) {
  const isOver = result.status === "passed" || result.status === "failed";
  return (
    <>
      {result.faults.length > 0 && (
        <ul class="check-faults">
          {result.faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      {result.judged && (
        <p class="text-sm break-words">
          <span class="text-(--quiet)">{t.judged}</span> {result.judged}
        </p>
      )}
      {result.notes.map((note) => (
        <p class="help" key={note}>
          {note}
        </p>
      ))}
      {isOver && (
        <details class="more">
          <summary class="link-quiet">{t.answerAndCalls}</summary>
          <div class="grid gap-3 mt-3 min-w-0">
            {mayRead ? (
              <div
                class="md check-answer"
                dangerouslySetInnerHTML={{ __html: renderText(result.answer || t.noAnswer) }}
              />
            ) : (
              <p class="help">{t.notYours}</p>
            )}
            {result.calls.map((call) => (
              <div class="check-call" key={call.call_id}>
                <p>
                  {logUrl && !call.is_recorded ? (
                    <a class="link-brand mono" href={`${logUrl}calls/${call.call_id}/`}>
                      {call.tool}
                    </a>
                  ) : (
                    <span class="mono">{call.tool}</span>
                  )}{" "}
                  <span class="help">{call.is_recorded ? t.recorded : t.callStatus(call.status)}</span>
                </p>
                {call.arguments && <pre tabIndex={0}>{JSON.stringify(call.arguments, null, 2)}</pre>}
                {call.result && <pre tabIndex={0}>{call.result}</pre>}
              </div>
            ))}
            {result.calls.length === 0 && <p class="help">{t.noCalls}</p>}
          </div>
        </details>
      )}
    </>
  );
}

export function Summary({ run, onCancel }: { run: CheckRun; onCancel: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current) localTimes(box.current);
  }, [run]);
  const done = (run.results ?? []).filter((one) => one.status === "passed" || one.status === "failed").length;
  if (run.status === "running") {
    return (
      <div class="check-summary">
        <progress class="progress" max={run.total} value={done} aria-label={t.progress} />
        <span class="grow">{t.running(done, run.total)}</span>
        <button class="btn btn-sm btn-outline-quiet" type="button" onClick={onCancel}>
          {common.cancel}
        </button>
      </div>
    );
  }
  const isGood = run.status === "completed" && run.passed === run.total;
  return (
    <div class="check-summary" ref={box}>
      <span class="tag" data-tone={isGood ? "ok" : run.status === "completed" ? "bad" : "muted"}>
        {run.status === "completed" ? t.passed(run.passed, run.total) : t.cancelled}
      </span>
      <span class="help">
        {run.version === null ? t.ofDraft : t.ofVersion(run.version)}
        {run.person && ` · ${run.person}`}
        {run.is_scheduled && ` · ${t.onSchedule}`}
        {run.usage && ` · ${usageWords(run.usage)}`}
        {run.finished_at && (
          <>
            {" · "}
            <time dateTime={run.finished_at} data-local="minute" key={run.id}>
              {run.finished_at}
            </time>
          </>
        )}
      </span>
      {run.note && <span class="help">{run.note}</span>}
    </div>
  );
}
