/** Checks of a bud in its editor: test questions, running them, and what came of it. */
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../../net/api";
import { askFirst } from "../../pages/asking";
import t from "../../texts/checks";
import common from "../../texts/common";
import { Icon } from "../../ui/icon";
import type { BudCheck, CheckPlan, CheckRun } from "../../wire";
import { type Gate, holdSaving } from "./before-saving";
import { Faults } from "./faults";
import { CheckForm } from "./form";
import { type PlanChange, PlanForm } from "./plan";
import { Result, Summary, TONES } from "./results";
import { bodyOf, changedMeanwhile, type Problems, type Typed } from "./values";

const POLL_MS = 1_000;
const TIMEOUT_MS = 30_000;

interface Data {
  checks: BudCheck[];
  run: CheckRun | null;
  plan: CheckPlan;
  slug: string;
  run_url: string;
  log_url: string;
  most: number;
}

function Panel({ data, editor }: { data: Data; editor: HTMLFormElement }) {
  const [checks, setChecks] = useState(data.checks);
  const [run, setRun] = useState(data.run);
  const [plan, setPlan] = useState(data.plan);
  const [isHeld, setHeld] = useState(false);
  const [open, setOpen] = useState<string | null>(null);
  const [problems, setProblems] = useState<Problems>({});
  const [isBusy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string[]>([]);
  const [said, setSaid] = useState("");
  const add = useRef<HTMLButtonElement>(null);
  const gate = useRef<Gate | null>(null);
  const saving = useRef<Promise<void>>(Promise.resolve());
  const unsaved = useRef(false);
  const wanted = useRef(false);
  wanted.current = Boolean(plan.before_saving) && checks.length > 0;
  const skipping = () => editor.elements.namedItem("skip_checks") as HTMLInputElement | null;
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
        if (next.status !== "running") decide(next);
      } catch (error) {
        // The run goes on without this page; it is asked for again.
        setFailed([error instanceof Error ? error.message : common.failed]);
        setRun({ ...run });
      }
    }, POLL_MS);
    return () => clearTimeout(timer);
  }, [run]);

  useEffect(() => {
    const begin = () => {
      setHeld(true);
      setSaid(t.checkFirst);
      document.getElementById("checks")?.scrollIntoView({ block: "start" });
      void start();
    };
    gate.current = holdSaving(
      editor,
      () => wanted.current && !skipping()?.checked,
      begin,
      () => setHeld(false),
    );
    return () => gate.current?.close();
  }, []);

  /** The checks that Save waits for have ended, or could not be run. */
  const decide = (ended: CheckRun | null) => {
    if (!gate.current?.isWaiting()) return;
    setHeld(false);
    if (ended?.status === "completed" && ended.passed === ended.total) return gate.current.letThrough();
    const question =
      ended?.status === "completed" ? t.failedBefore(ended.passed, ended.total) : t.notCheckedBefore;
    const waiting = gate.current;
    askFirst(
      question,
      t.saveAnyway,
      () => {
        // The server demands the same, so it has to hear that the person insists.
        const insists = document.createElement("input");
        Object.assign(insists, { type: "hidden", name: "skip_checks", value: "on" });
        editor.append(insists);
        waiting.letThrough();
      },
      () => waiting.drop(),
    );
  };

  const changePlan = async (change: PlanChange) => {
    try {
      const answer = await ask(`buds/${editor.dataset.bud}/check-plan/`, "PATCH", change);
      if (!answer.ok) throw await problemOf(answer);
      setPlan((await answer.json()) as CheckPlan);
      setSaid(t.planSaved);
    } catch (error) {
      setPlan({ ...plan });
      setFailed([error instanceof Error ? error.message : common.failed]);
    }
  };

  const save = async (check: BudCheck | null, typed: Typed) => {
    const read = bodyOf(typed);
    if ("problems" in read) return setProblems(read.problems);
    setBusy(true);
    try {
      const answer = check
        ? await ask(`checks/${check.id}/`, "PATCH", { ...read.body, version: check.version })
        : await ask(`buds/${editor.dataset.bud}/checks/`, "POST", read.body);
      const others = check && answer.status === 409 ? await ask(`checks/${check.id}/`, "GET") : null;
      if (check && others?.ok) {
        const theirs = (await others.json()) as BudCheck;
        // What was typed stays in the form, and saving it again replaces theirs.
        setChecks(checks.map((one) => (one.id === check.id ? theirs : one)));
        setProblems(changedMeanwhile(check, theirs));
        return;
      }
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
    await saving.current; // it runs what stands in the list
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
        decide(null);
      } else if (given.run) {
        setRun(given.run);
      }
    } catch {
      setFailed([t.notStarted]);
      decide(null);
    } finally {
      setBusy(false);
    }
  };

  const cancel = async () => {
    if (!run) return;
    try {
      const answer = await ask(`check-runs/${run.id}/cancel/`, "POST");
      if (!answer.ok) throw await problemOf(answer);
      const ended = (await answer.json()) as CheckRun;
      setRun(ended);
      decide(ended);
    } catch (error) {
      setFailed([error instanceof Error ? error.message : common.failed]);
    }
  };

  const resultOf = (check: BudCheck) => run?.results?.find((one) => one.check_id === check.id);
  const edit = (which: string) => {
    const begin = () => {
      setProblems({});
      setOpen(which);
    };
    if (which === open) return;
    if (unsaved.current) askFirst(t.unsavedCheck, t.discardCheck, begin);
    else begin();
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
        {isHeld && (
          <p class="notice" data-tone="info">
            <Icon name="info" />
            <span>{t.checkFirst}</span>
          </p>
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
                      unsaved={unsaved}
                      onSave={(typed) => (saving.current = save(check, typed))}
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
            unsaved={unsaved}
            onSave={(typed) => (saving.current = save(null, typed))}
            onCancel={() => {
              setOpen(null);
              add.current?.focus();
            }}
          />
        )}
        {checks.length > 0 && <PlanForm plan={plan} onChange={changePlan} />}
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
