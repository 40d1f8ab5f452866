/** The form of one check. */
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import t from "../../texts/checks";
import common from "../../texts/common";
import type { BudCheck } from "../../wire";
import { Faults } from "./faults";
import { faultsOf, type Problems, type Typed, typedOf } from "./values";

interface FormProps {
  check: BudCheck | null;
  problems: Problems;
  isBusy: boolean;
  /** Whether something was typed that is not saved; the page asks before it goes. */
  unsaved: { current: boolean };
  onSave: (typed: Typed) => void;
  onCancel: () => void;
}

export function CheckForm({ check, problems, isBusy, unsaved, onSave, onCancel }: FormProps) {
  const id = useId();
  const [typed, setTyped] = useState(() => typedOf(check));
  const begun = useRef(JSON.stringify(typed));
  useEffect(() => {
    if (JSON.stringify(typed) === begun.current) return;
    unsaved.current = true;
    // Saving the bud leaves the page, too.
    const ask = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      unsaved.current = false;
      removeEventListener("beforeunload", ask);
    };
  }, [typed]);
  const first = useRef<HTMLTextAreaElement>(null);
  // Before the browser paints: a later focus would take the keys of somebody who types elsewhere by then.
  useLayoutEffect(() => first.current?.focus(), []);
  const set = (some: Partial<Typed>) => setTyped({ ...typed, ...some });
  const general = faultsOf(problems, "");
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
        <Faults lines={faultsOf(problems, "question")} />
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
              problems={faultsOf(problems, `calls.${place}`)}
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
          <Faults lines={faultsOf(problems, "contains")} />
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
          <Faults lines={faultsOf(problems, "excludes")} />
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
        <Faults lines={faultsOf(problems, "criterion")} />
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
              problems={faultsOf(problems, `recordings.${place}`)}
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
    <p class="check-add">
      <button class="btn btn-sm btn-outline-quiet" type="button" onClick={onClick}>
        {label}
      </button>
    </p>
  );
}

function RemoveRow({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button
      class="btn btn-sm btn-quiet check-remove"
      type="button"
      aria-label={name}
      onClick={(event) => {
        // The row goes with its button: from there, people go on to the next one, or add one.
        event.currentTarget.closest("fieldset")?.querySelector<HTMLElement>(".check-add button")?.focus();
        onClick();
      }}
    >
      {t.remove}
    </button>
  );
}
