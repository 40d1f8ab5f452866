import { useId } from "preact/hooks";
import common from "../texts/common";
import t from "../texts/questions";
import type { FormField, Value } from "./elicitation";

const INPUT_MODE: Partial<Record<FormField["kind"], "email" | "url" | "numeric" | "decimal">> = {
  email: "email",
  uri: "url",
  integer: "numeric",
  number: "decimal",
};

interface FieldProps {
  field: FormField;
  value: Value;
  problem: string | undefined;
  onChange: (value: Value) => void;
}

/** One field of a server's form; its texts are the server's, so they are shown as text and nothing else. */
export function FormFieldInput({ field, value, problem, onChange }: FieldProps) {
  const id = useId();
  const help = [
    field.description && `${id}-help`,
    field.isSecret && `${id}-secret`,
    problem && `${id}-problem`,
  ].filter(Boolean);
  const shared = {
    id,
    required: field.required,
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": help.length > 0 ? help.join(" ") : undefined,
  };
  const mark = field.required ? (
    <span class="required" aria-hidden="true">
      *
    </span>
  ) : (
    <span class="optional">{common.optional}</span>
  );
  const notes = (
    <>
      {field.description && (
        <p class="help break-words" id={`${id}-help`}>
          {field.description}
        </p>
      )}
      {field.isSecret && (
        <p class="field-warning" id={`${id}-secret`}>
          {t.secret}
        </p>
      )}
      {problem && (
        <p class="field-error" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </>
  );
  if (field.kind === "boolean") {
    return (
      <div class="field">
        <label class="check" for={id}>
          <input
            {...shared}
            required={false}
            type="checkbox"
            checked={value === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
          />
          <span class="break-words">{field.title}</span>
        </label>
        {notes}
      </div>
    );
  }
  if (field.kind === "many") {
    const picked = Array.isArray(value) ? value : [];
    return (
      <fieldset class="field" aria-describedby={shared["aria-describedby"]}>
        <legend class="break-words">
          {field.title} {mark}
        </legend>
        {field.choices.map((choice, i) => (
          <label key={choice.value} class="check" for={`${id}-${i}`}>
            <input
              id={`${id}-${i}`}
              type="checkbox"
              checked={picked.includes(choice.value)}
              onChange={(event) =>
                onChange(
                  event.currentTarget.checked
                    ? [...picked, choice.value]
                    : picked.filter((other) => other !== choice.value),
                )
              }
            />
            <span class="break-words">{choice.title}</span>
          </label>
        ))}
        {notes}
      </fieldset>
    );
  }
  const text = typeof value === "string" ? value : "";
  return (
    <div class="field">
      <label class="break-words" for={id}>
        {field.title} {mark}
      </label>
      {field.kind === "one" ? (
        <select {...shared} value={text} onChange={(event) => onChange(event.currentTarget.value)}>
          {(!field.required || text === "") && (
            <option value="">{field.required ? t.choose : common.none}</option>
          )}
          {field.choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.title}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...shared}
          {...(field.kind === "date"
            ? { type: "date" as const }
            : field.kind === "date-time"
              ? { type: "datetime-local" as const }
              : { type: "text" as const, inputMode: INPUT_MODE[field.kind] ?? "text" })}
          autocomplete="off"
          value={text}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
      {notes}
    </div>
  );
}
