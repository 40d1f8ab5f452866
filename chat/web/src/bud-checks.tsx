/** Checks of a bud in its editor: test questions, running them, and what came of it. */
import { render } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { renderText } from "./markdown/render";
import { problemOf } from "./net/api";
import { askFirst, localTimes } from "./site";
import t from "./texts/checks";
import common from "./texts/common";
import { Icon } from "./ui/icon";
import type { BudCheck, CheckResult, CheckRun } from "./wire";

const POLL_MS = 1_000;
const TIMEOUT_MS = 30_000;

interface Data {
  checks: BudCheck[];
  run: CheckRun | null;
  slug: string;
  run_url: string;
  log_url: string;
  most: number;
}

type Problems = Record<string, string[]>;

/** What the form holds of a check, as people type it. */
export interface Typed {
  question: string;
  calls: { tool: string; arguments: string }[];
  contains: string;
  excludes: string;
  criterion: string;
  recordings: { tool: string; arguments: string; result: string; is_error: boolean }[];
}

const written = (values: object | undefined): string =>
  values && Object.keys(values).length > 0 ? JSON.stringify(values, null, 2) : "";

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export function typedOf(check: BudCheck | null): Typed {
  return {
    question: check?.question ?? "",
    calls: (check?.calls ?? []).map((one) => ({ tool: one.tool, arguments: written(one.arguments) })),
    contains: (check?.contains ?? []).join("\n"),
    excludes: (check?.excludes ?? []).join("\n"),
    criterion: check?.criterion ?? "",
    recordings: (check?.recordings ?? []).map((one) => ({
      tool: one.tool,
      arguments: written(one.arguments),
      result: one.result ?? "",
      is_error: one.is_error ?? false,
    })),
  };
}

/** The body of a request; or what cannot be read, at its field. */
export function bodyOf(typed: Typed): { body: object } | { problems: Problems } {
  const problems: Problems = {};
  const read = (text: string, field: string): object => {
    if (!text.trim()) return {};
    try {
      const value: unknown = JSON.parse(text);
      if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
    } catch {
      // Told below, as any other text that is no object.
    }
    problems[field] = [t.notJson];
    return {};
  };
  const calls = typed.calls.map((one, place) => ({
    tool: one.tool.trim(),
    arguments: read(one.arguments, `calls.${place}`),
  }));
  const recordings = typed.recordings.map((one, place) => ({
    ...one,
    tool: one.tool.trim(),
    arguments: read(one.arguments, `recordings.${place}`),
  }));
  if (Object.keys(problems).length > 0) return { problems };
  return {
    body: {
      question: typed.question,
      calls,
      contains: linesOf(typed.contains),
      excludes: linesOf(typed.excludes),
      criterion: typed.criterion,
      recordings,
    },
  };
}

/** What stands at a field, with what stands at its parts. */
function told(problems: Problems, field: string): string[] {
  return Object.entries(problems).flatMap(([name, some]) =>
    name === field || name.startsWith(`${field}.`) ? some : [],
  );
}

function Faults({ lines }: { lines: string[] }) {
  return (
    <>
      {lines.map((line) => (
        <p class="field-error" key={line}>
          {line}
        </p>
      ))}
    </>
  );
}

interface FormProps {
  check: BudCheck | null;
  problems: Problems;
  isBusy: boolean;
  onSave: (typed: Typed) => void;
  onCancel: () => void;
}

function CheckForm({ check, problems, isBusy, onSave, onCancel }: FormProps) {
  const id = useId();
  const [typed, setTyped] = useState(() => typedOf(check));
  const first = useRef<HTMLTextAreaElement>(null);
  useEffect(() => first.current?.focus(), []);
  const set = (some: Partial<Typed>) => setTyped({ ...typed, ...some });
  const general = told(problems, "");
  return (
    <form
      class="check-form stack-form"
      aria-label={check ? t.editCheck : t.newCheck}
      onSubmit={(event) => {
        event.preventDefault();
        onSave(typed);
      }}
    >
      {general.length > 0 && (
        <div role="alert">
          <Faults lines={general} />
        </div>
      )}
      <div class="field">
        <label for={`${id}-question`}>{t.question}</label>
        <textarea
          id={`${id}-question`}
          ref={first}
          rows={2}
          required
          maxLength={4000}
          value={typed.question}
          onInput={(event) => set({ question: event.currentTarget.value })}
        />
        <Faults lines={told(problems, "question")} />
      </div>
      <fieldset class="check-group">
        <legend>{t.calls}</legend>
        <p class="help">{t.callsHelp}</p>
        {typed.calls.map((one, place) => (
          <div class="check-row" key={place}>
            <ToolField
              id={`${id}-call-${place}`}
              value={one.tool}
              onChange={(tool) => set({ calls: changed(typed.calls, place, { tool }) })}
            />
            <ArgumentsField
              id={`${id}-arguments-${place}`}
              label={t.someArguments}
              value={one.arguments}
              problems={told(problems, `calls.${place}`)}
              onChange={(text) => set({ calls: changed(typed.calls, place, { arguments: text }) })}
            />
            <RemoveRow
              name={t.removeCall(one.tool || t.unnamed)}
              onClick={() => set({ calls: typed.calls.filter((_, other) => other !== place) })}
            />
          </div>
        ))}
        <Faults lines={problems.calls ?? []} />
        <AddRow
          label={t.addCall}
          onClick={() => set({ calls: [...typed.calls, { tool: "", arguments: "" }] })}
        />
      </fieldset>
      <div class="field-row">
        <div class="field grow">
          <label for={`${id}-contains`}>
            {t.contains} <span class="optional">{common.optional}</span>
          </label>
          <textarea
            id={`${id}-contains`}
            rows={2}
            value={typed.contains}
            aria-describedby={`${id}-lines`}
            onInput={(event) => set({ contains: event.currentTarget.value })}
          />
          <Faults lines={told(problems, "contains")} />
        </div>
        <div class="field grow">
          <label for={`${id}-excludes`}>
            {t.excludes} <span class="optional">{common.optional}</span>
          </label>
          <textarea
            id={`${id}-excludes`}
            rows={2}
            value={typed.excludes}
            aria-describedby={`${id}-lines`}
            onInput={(event) => set({ excludes: event.currentTarget.value })}
          />
          <Faults lines={told(problems, "excludes")} />
        </div>
      </div>
      <p class="help" id={`${id}-lines`}>
        {t.linesHelp}
      </p>
      <div class="field">
        <label for={`${id}-criterion`}>
          {t.criterion} <span class="optional">{common.optional}</span>
        </label>
        <input
          id={`${id}-criterion`}
          maxLength={500}
          placeholder={t.criterionExample}
          value={typed.criterion}
          aria-describedby={`${id}-criterion-help`}
          onInput={(event) => set({ criterion: event.currentTarget.value })}
        />
        <p class="help" id={`${id}-criterion-help`}>
          {t.criterionHelp}
        </p>
        <Faults lines={told(problems, "criterion")} />
      </div>
      <fieldset class="check-group">
        <legend>{t.recordings}</legend>
        <p class="help">{t.recordingsHelp}</p>
        {typed.recordings.map((one, place) => (
          <div class="check-row" key={place}>
            <ToolField
              id={`${id}-recorded-${place}`}
              value={one.tool}
              onChange={(tool) => set({ recordings: changed(typed.recordings, place, { tool }) })}
            />
            <ArgumentsField
              id={`${id}-when-${place}`}
              label={t.whenArguments}
              value={one.arguments}
              problems={told(problems, `recordings.${place}`)}
              onChange={(text) => set({ recordings: changed(typed.recordings, place, { arguments: text }) })}
            />
            <div class="field">
              <label for={`${id}-result-${place}`}>{t.result}</label>
              <textarea
                id={`${id}-result-${place}`}
                class="mono"
                rows={2}
                value={one.result}
                onInput={(event) =>
                  set({
                    recordings: changed(typed.recordings, place, { result: event.currentTarget.value }),
                  })
                }
              />
            </div>
            <label class="check">
              <input
                type="checkbox"
                checked={one.is_error}
                onChange={(event) =>
                  set({
                    recordings: changed(typed.recordings, place, { is_error: event.currentTarget.checked }),
                  })
                }
              />
              {t.isError}
            </label>
            <RemoveRow
              name={t.removeRecording(one.tool || t.unnamed)}
              onClick={() => set({ recordings: typed.recordings.filter((_, other) => other !== place) })}
            />
          </div>
        ))}
        <Faults lines={problems.recordings ?? []} />
        <AddRow
          label={t.addRecording}
          onClick={() =>
            set({
              recordings: [...typed.recordings, { tool: "", arguments: "", result: "", is_error: false }],
            })
          }
        />
      </fieldset>
      <div class="form-actions">
        <button class="btn btn-primary" type="submit" disabled={isBusy}>
          {t.saveCheck}
        </button>
        <button class="btn btn-outline-quiet" type="button" onClick={onCancel}>
          {common.cancel}
        </button>
      </div>
    </form>
  );
}

function changed<Row>(rows: Row[], place: number, some: Partial<Row>): Row[] {
  return rows.map((row, other) => (other === place ? { ...row, ...some } : row));
}

function ToolField({ id, value, onChange }: { id: string; value: string; onChange: (tool: string) => void }) {
  return (
    <div class="field">
      <label for={id}>{t.tool}</label>
      <input
        id={id}
        class="mono"
        list="bud-check-tools"
        required
        maxLength={460}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}

interface ArgumentsProps {
  id: string;
  label: string;
  value: string;
  problems: string[];
  onChange: (text: string) => void;
}

function ArgumentsField({ id, label, value, problems, onChange }: ArgumentsProps) {
  return (
    <div class="field">
      <label for={id}>
        {label} <span class="optional">{common.optional}</span>
      </label>
      <textarea
        id={id}
        class="mono"
        rows={2}
        spellcheck={false}
        placeholder={t.argumentsExample}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <Faults lines={problems} />
    </div>
  );
}

function AddRow({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <p>
      <button class="btn btn-sm btn-outline-quiet" type="button" onClick={onClick}>
        {label}
      </button>
    </p>
  );
}

function RemoveRow({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button class="btn btn-sm btn-quiet check-remove" type="button" aria-label={name} onClick={onClick}>
      {t.remove}
    </button>
  );
}

const TONES: Record<CheckResult["status"], string> = {
  waiting: "muted",
  running: "info",
  judging: "info",
  passed: "ok",
  failed: "bad",
  cancelled: "muted",
};

function Result({ result, mayRead, logUrl }: { result: CheckResult; mayRead: boolean; logUrl: string }) {
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
                {call.arguments && <pre>{JSON.stringify(call.arguments, null, 2)}</pre>}
                {call.result && <pre>{call.result}</pre>}
              </div>
            ))}
            {result.calls.length === 0 && <p class="help">{t.noCalls}</p>}
          </div>
        </details>
      )}
    </>
  );
}

function Summary({ run, onCancel }: { run: CheckRun; onCancel: () => void }) {
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

function Panel({ data, editor }: { data: Data; editor: HTMLFormElement }) {
  const [checks, setChecks] = useState(data.checks);
  const [run, setRun] = useState(data.run);
  const [open, setOpen] = useState<string | null>(null);
  const [problems, setProblems] = useState<Problems>({});
  const [isBusy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string[]>([]);
  const [said, setSaid] = useState("");
  const add = useRef<HTMLButtonElement>(null);
  const token = editor.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]")?.value ?? "";
  const headers = { Accept: "application/json", "X-Workspace": data.slug, "X-CSRFToken": token };
  const isRunning = run?.status === "running";

  const ask = (path: string, method: string, body?: object): Promise<Response> =>
    fetch(`/api/${path}`, {
      method,
      headers: body ? { ...headers, "Content-Type": "application/json" } : headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });

  useEffect(() => {
    if (!run || run.status !== "running") return;
    const timer = setTimeout(async () => {
      try {
        const answer = await ask(`check-runs/${run.id}/`, "GET");
        if (!answer.ok) throw await problemOf(answer);
        const next = (await answer.json()) as CheckRun;
        setFailed([]);
        setRun(next);
        if (next.status === "completed") setSaid(t.passed(next.passed, next.total));
      } catch (error) {
        // The run goes on without this page; it is asked for again.
        setFailed([error instanceof Error ? error.message : common.failed]);
        setRun({ ...run });
      }
    }, POLL_MS);
    return () => clearTimeout(timer);
  }, [run]);

  const save = async (check: BudCheck | null, typed: Typed) => {
    const read = bodyOf(typed);
    if ("problems" in read) return setProblems(read.problems);
    setBusy(true);
    try {
      const answer = check
        ? await ask(`checks/${check.id}/`, "PATCH", read.body)
        : await ask(`buds/${editor.dataset.bud}/checks/`, "POST", read.body);
      if (!answer.ok) {
        setProblems(await problemsOf(answer));
        return;
      }
      const stored = (await answer.json()) as BudCheck;
      setChecks(check ? checks.map((one) => (one.id === check.id ? stored : one)) : [...checks, stored]);
      setProblems({});
      setOpen(null);
      setSaid(t.saved);
      add.current?.focus();
    } catch {
      setProblems({ "": [common.failed] });
    } finally {
      setBusy(false);
    }
  };

  const remove = async (check: BudCheck) => {
    try {
      const answer = await ask(`checks/${check.id}/`, "DELETE");
      if (!answer.ok && answer.status !== 404) throw await problemOf(answer);
      setChecks(checks.filter((one) => one.id !== check.id));
      setSaid(t.removed);
      add.current?.focus();
    } catch (error) {
      setFailed([error instanceof Error ? error.message : common.failed]);
    }
  };

  const start = async () => {
    setBusy(true);
    setFailed([]);
    const body = new FormData(editor);
    body.delete("base_version");
    try {
      const answer = await fetch(data.run_url, {
        method: "POST",
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const given = (await answer.json()) as { run?: CheckRun; errors?: Problems };
      if (given.errors) {
        setFailed(
          Object.entries(given.errors).flatMap(([name, some]) =>
            some.map((one) => (name && name !== "checks" ? common.fieldProblem(name, one) : one)),
          ),
        );
      } else if (given.run) {
        setRun(given.run);
      }
    } catch {
      setFailed([t.notStarted]);
    } finally {
      setBusy(false);
    }
  };

  const cancel = async () => {
    if (!run) return;
    try {
      const answer = await ask(`check-runs/${run.id}/cancel/`, "POST");
      if (!answer.ok) throw await problemOf(answer);
      setRun((await answer.json()) as CheckRun);
    } catch (error) {
      setFailed([error instanceof Error ? error.message : common.failed]);
    }
  };

  const resultOf = (check: BudCheck) => run?.results?.find((one) => one.check_id === check.id);
  const edit = (which: string) => {
    setProblems({});
    setOpen(which);
  };
  return (
    <>
      <div class="panel-head">
        <h2 class="panel-title grow" id="checks-heading">
          {t.heading}
        </h2>
        <button
          class="btn btn-sm btn-outline-quiet"
          type="button"
          ref={add}
          disabled={checks.length >= data.most}
          onClick={() => edit("new")}
        >
          <Icon name="plus" />
          {t.add}
        </button>
        {checks.length > 0 && (
          <button class="btn btn-sm btn-primary" type="button" disabled={isBusy || isRunning} onClick={start}>
            <Icon name="listChecks" />
            {t.run}
          </button>
        )}
      </div>
      <div class="panel-body grid gap-4 min-w-0">
        <p class="help">{checks.length > 0 ? t.help : t.none}</p>
        <div role="status" class="sr-only">
          {said}
        </div>
        {failed.length > 0 && (
          <div role="alert">
            <Faults lines={failed} />
          </div>
        )}
        {run && <Summary run={run} onCancel={cancel} />}
        {checks.length > 0 && (
          <ul class="check-list" aria-labelledby="checks-heading">
            {checks.map((check) => {
              const result = resultOf(check);
              if (open === check.id) {
                return (
                  <li key={check.id}>
                    <CheckForm
                      check={check}
                      problems={problems}
                      isBusy={isBusy}
                      onSave={(typed) => save(check, typed)}
                      onCancel={() => setOpen(null)}
                    />
                  </li>
                );
              }
              return (
                <li key={check.id}>
                  <div class="check-head">
                    <div class="min-w-0 grow">
                      <p class="check-question">{check.question}</p>
                      <p class="help">{t.expects(check)}</p>
                    </div>
                    {result && (
                      <span class="tag" data-tone={TONES[result.status]}>
                        {t.status[result.status]}
                      </span>
                    )}
                    <div class="check-actions">
                      <button
                        class="btn btn-sm btn-quiet"
                        type="button"
                        aria-label={t.editOf(check.question)}
                        onClick={() => edit(check.id)}
                      >
                        {t.edit}
                      </button>
                      <button
                        class="btn btn-sm btn-quiet"
                        type="button"
                        aria-label={t.removeOf(check.question)}
                        onClick={() => askFirst(t.sure(check.question), t.remove, () => remove(check))}
                      >
                        {t.remove}
                      </button>
                    </div>
                  </div>
                  {result && run && <Result result={result} mayRead={run.may_read} logUrl={data.log_url} />}
                </li>
              );
            })}
          </ul>
        )}
        {open === "new" && (
          <CheckForm
            check={null}
            problems={problems}
            isBusy={isBusy}
            onSave={(typed) => save(null, typed)}
            onCancel={() => {
              setOpen(null);
              add.current?.focus();
            }}
          />
        )}
      </div>
    </>
  );
}

/** What is wrong at which field. */
async function problemsOf(answer: Response): Promise<Problems> {
  const copy = answer.clone();
  try {
    const body = (await answer.json()) as { errors?: { attr?: string | null; detail?: string }[] };
    const found: Problems = {};
    for (const one of body.errors ?? []) {
      const name = one.attr ?? "";
      found[name] = [...(found[name] ?? []), one.detail ?? common.failed];
    }
    if (answer.status < 500 && Object.keys(found).length > 0) return found;
  } catch {
    // A proxy's page; told by its status below.
  }
  return { "": [(await problemOf(copy)).message] };
}

export function startChecks(editor: HTMLFormElement): void {
  const root = document.querySelector<HTMLElement>("[data-checks]");
  const source = document.getElementById("bud-checks");
  if (!root || !source || !editor.dataset.bud) return;
  const data = JSON.parse(source.textContent ?? "{}") as Data;
  const tools = document.getElementById("bud-tools");
  if (tools) {
    const known = JSON.parse(tools.textContent ?? "{}") as {
      servers: { name: string; tools: { name: string }[] }[];
    };
    const list = document.createElement("datalist");
    list.id = "bud-check-tools";
    for (const server of known.servers) {
      for (const tool of server.tools) list.append(new Option("", `${server.name}.${tool.name}`));
    }
    document.body.append(list);
  }
  render(<Panel data={data} editor={editor} />, root);
}
