import { useId, useState } from "preact/hooks";
import t from "../texts/calls";
import common from "../texts/common";
import type { JsonObject } from "../wire";
import { type Field, fieldProblems, flatFields, parseArguments, withField } from "./arguments";

interface EditorProps {
  schema: JsonObject | null;
  value: JsonObject;
  /** The edited arguments, or null while they are not valid. */
  onChange: (value: JsonObject | null) => void;
}

function FieldInput({
  field,
  value,
  problem,
  onInput,
}: {
  field: Field;
  value: JsonObject[string] | undefined;
  problem: string | undefined;
  onInput: (typed: string | boolean) => void;
}) {
  const id = useId();
  const shared = {
    id,
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": problem ? `${id}-problem` : field.help ? `${id}-help` : undefined,
  };
  const text = value === undefined ? "" : String(value);
  return (
    <div class="field">
      {field.kind !== "boolean" && (
        <label for={id}>
          {field.label}
          {!field.required && <span class="optional">{common.optional}</span>}
        </label>
      )}
      {field.kind === "boolean" && (
        <label class="check" for={id}>
          <input
            {...shared}
            type="checkbox"
            checked={value === true}
            onChange={(event) => onInput(event.currentTarget.checked)}
          />
          <span>{field.label}</span>
        </label>
      )}
      {field.kind === "choice" && (
        <select {...shared} value={text} onChange={(event) => onInput(event.currentTarget.value)}>
          {!field.required && <option value="">{common.none}</option>}
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
      {field.kind === "long" && (
        <textarea {...shared} rows={4} value={text} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      {(field.kind === "text" || field.kind === "integer" || field.kind === "number") && (
        <input
          {...shared}
          type="text"
          inputMode={field.kind === "text" ? "text" : "decimal"}
          value={text}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      {field.help && (
        <p class="help" id={`${id}-help`}>
          {field.help}
        </p>
      )}
      {problem && (
        <p class="field-error" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

export function ArgumentEditor({ schema, value, onChange }: EditorProps) {
  const id = useId();
  const [args, setArgs] = useState(value);
  const [fields] = useState(() => flatFields(schema, value));
  const [isJson, setJson] = useState(fields === null);
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const problems = fields ? fieldProblems(fields, args) : {};

  const editField = (field: Field, typed: string | boolean) => {
    const next = withField(args, field, typed);
    setArgs(next);
    setText(JSON.stringify(next, null, 2));
    onChange(Object.keys(fieldProblems(fields ?? [], next)).length === 0 ? next : null);
  };
  const editText = (typed: string) => {
    setText(typed);
    const parsed = parseArguments(typed);
    if ("problem" in parsed) {
      setProblem(parsed.problem);
      onChange(null);
    } else {
      setProblem(null);
      setArgs(parsed.value);
      onChange(parsed.value);
    }
  };
  const canSwitch = fields !== null && problem === null && flatFields(schema, args) !== null;
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
          <FieldInput
            key={field.name}
            field={field}
            value={args[field.name]}
            problem={problems[field.name]}
            onInput={(typed) => editField(field, typed)}
          />
        ))
      )}
    </div>
  );
}
