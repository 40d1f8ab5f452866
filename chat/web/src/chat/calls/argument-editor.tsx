import { useId, useState } from "preact/hooks";
import { FormFieldInput } from "../../forms/field";
import { contentOf, formProblems, type Values } from "../../forms/schema";
import t from "../../texts/calls";
import common from "../../texts/common";
import type { JsonObject } from "../../wire";
import { flatFields, parseArguments, typedValues } from "./arguments";

interface EditorProps {
  schema: JsonObject | null;
  value: JsonObject;
  /** The edited arguments, or null while they are not valid. */
  onChange: (value: JsonObject | null) => void;
}

export function ArgumentEditor({ schema, value, onChange }: EditorProps) {
  const id = useId();
  const [fields] = useState(() => flatFields(schema, value));
  const [values, setValues] = useState<Values>(() => typedValues(fields ?? [], value));
  const [isJson, setJson] = useState(fields === null);
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const [canSwitch, setCanSwitch] = useState(fields !== null);
  // An argument may be an empty text: only one that is missing is asked for.
  const problemsOf = (next: Values) => formProblems(fields ?? [], next, { allowsEmpty: true });
  const problems = problemsOf(values);

  const editField = (next: Values) => {
    const args = contentOf(fields ?? [], next);
    setValues(next);
    setText(JSON.stringify(args, null, 2));
    onChange(Object.keys(problemsOf(next)).length === 0 ? args : null);
  };
  const editText = (typed: string) => {
    setText(typed);
    const parsed = parseArguments(typed);
    if ("problem" in parsed) {
      setProblem(parsed.problem);
      setCanSwitch(false);
      onChange(null);
      return;
    }
    const known = flatFields(schema, parsed.value);
    setProblem(null);
    setCanSwitch(fields !== null && known !== null);
    if (known) setValues(typedValues(known, parsed.value));
    onChange(parsed.value);
  };
  return (
    <div class="grid gap-3">
      {fields !== null && (
        <div class="theme-choice w-fit" role="group" aria-label={t.editAs}>
          <button type="button" aria-pressed={!isJson} disabled={!canSwitch} onClick={() => setJson(false)}>
            {t.fields}
          </button>
          <button type="button" aria-pressed={isJson} onClick={() => setJson(true)}>
            {common.json}
          </button>
        </div>
      )}
      {isJson ? (
        <div class="field">
          <label for={id}>{t.argumentsAsJson}</label>
          <textarea
            id={id}
            class="font-mono text-sm"
            rows={Math.min(14, text.split("\n").length + 1)}
            spellcheck={false}
            value={text}
            aria-invalid={problem ? true : undefined}
            aria-describedby={problem ? `${id}-problem` : undefined}
            onInput={(event) => editText(event.currentTarget.value)}
          />
          {problem && (
            <p class="field-error" id={`${id}-problem`}>
              {problem}
            </p>
          )}
        </div>
      ) : (
        fields?.map((field) => (
          <FormFieldInput
            key={field.name}
            field={field}
            value={values[field.name]}
            problem={problems[field.name]}
            onChange={(next) => editField({ ...values, [field.name]: next })}
          />
        ))
      )}
    </div>
  );
}
