import { useId, useState } from "preact/hooks";
import common from "../texts/common";
import t from "../texts/questions";
import { describedBy, FieldNotes, Framed, Mark } from "./frame";
import { type Choice, type FormField, keyOf, startOf, type Value, type Values } from "./schema";

const INPUT_MODE: Partial<Record<FormField["kind"], "email" | "url" | "numeric" | "decimal">> = {
  email: "email",
  uri: "url",
  integer: "numeric",
  number: "decimal",
};
/** Longer texts, and those of several lines, get room to grow. */
const LONG = 80;

interface FieldProps {
  field: FormField;
  value: Value;
  problem?: string | undefined;
  /** A warning where a field looks like one for a secret. */
  warns?: boolean;
  onChange: (value: Value) => void;
}

/** One field of a schema; its texts are a server's, so they are shown as text and nothing else. */
export function FormFieldInput(props: FieldProps) {
  switch (props.field.kind) {
    case "object":
      return <ObjectField {...props} />;
    case "array":
      return <ListField {...props} />;
    case "many":
      return <ManyField {...props} />;
    case "boolean":
      return <SwitchField {...props} />;
    default:
      return <PlainField {...props} />;
  }
}

function Options({ choices }: { choices: readonly Choice[] }) {
  return (
    <>
      {choices.map((choice) => (
        <option key={keyOf(choice.value)} value={keyOf(choice.value)}>
          {choice.title}
        </option>
      ))}
    </>
  );
}

function PlainField({ field, value, problem, warns, onChange }: FieldProps) {
  const id = useId();
  const text = typeof value === "string" ? value : "";
  const [isLong] = useState(text.length > LONG || text.includes("\n"));
  const notes = { id, help: field.description, isSecret: warns && field.isSecret, problem };
  const shared = { id, "aria-required": field.required, ...describedBy(notes), value: text };
  return (
    <Framed {...notes} title={field.title} required={field.required}>
      {field.kind === "one" ? (
        <select {...shared} onChange={(event) => onChange(event.currentTarget.value)}>
          {(!field.required || text === "") && (
            <option value="">{field.required ? t.choose : common.none}</option>
          )}
          <Options choices={field.choices} />
        </select>
      ) : field.kind === "json" || (field.kind === "text" && isLong) ? (
        <textarea
          {...shared}
          rows={4}
          class={field.kind === "json" ? "mono" : undefined}
          placeholder={field.kind === "json" ? common.json : undefined}
          spellcheck={field.kind !== "json"}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <input
          {...shared}
          {...(field.kind === "date"
            ? { type: "date" as const }
            : field.kind === "date-time"
              ? { type: "datetime-local" as const }
              : { type: "text" as const, inputMode: INPUT_MODE[field.kind] ?? "text" })}
          autocomplete="off"
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Framed>
  );
}

/** A box to tick; where nothing was said yet, and nothing has to be, there is a third answer. */
function SwitchField({ field, value, problem, onChange }: FieldProps) {
  const id = useId();
  const notes = { id, help: field.description, problem };
  const [isChoice] = useState(value === undefined);
  if (isChoice) {
    return (
      <Framed {...notes} title={field.title} required={field.required}>
        <select
          id={id}
          {...describedBy(notes)}
          value={value === undefined ? "" : String(value)}
          onChange={({ currentTarget: { value: key } }) => onChange(key === "" ? undefined : key === "true")}
        >
          <option value="">{t.unset}</option>
          <option value="true">{t.yes}</option>
          <option value="false">{t.no}</option>
        </select>
      </Framed>
    );
  }
  return (
    <div class="field">
      <label class="check" for={id}>
        <input
          id={id}
          {...describedBy(notes)}
          type="checkbox"
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        <span class="break-words">{field.title}</span>
      </label>
      <FieldNotes {...notes} />
    </div>
  );
}

function ManyField({ field, value, problem, onChange }: FieldProps) {
  const id = useId();
  const notes = { id, help: field.description, problem };
  const picked = Array.isArray(value) ? value : [];
  return (
    <fieldset class="field" aria-describedby={describedBy(notes)["aria-describedby"]}>
      <legend class="break-words">
        {field.title} <Mark required={field.required} />
      </legend>
      {field.choices.map((choice, i) => (
        <label key={keyOf(choice.value)} class="check" for={`${id}-${i}`}>
          <input
            id={`${id}-${i}`}
            type="checkbox"
            checked={picked.includes(keyOf(choice.value))}
            onChange={(event) => {
              const key = keyOf(choice.value);
              onChange(
                event.currentTarget.checked ? [...picked, key] : picked.filter((other) => other !== key),
              );
            }}
          />
          <span class="break-words">{choice.title}</span>
        </label>
      ))}
      <FieldNotes {...notes} />
    </fieldset>
  );
}

function ObjectField({ field, value, onChange }: FieldProps) {
  const id = useId();
  const values: Values = typeof value === "object" && !Array.isArray(value) ? value : {};
  return (
    <fieldset class="field field-group">
      <legend class="break-words">{field.title}</legend>
      <FieldNotes id={id} help={field.description} />
      {field.fields.map((inner) => (
        <FormFieldInput
          key={inner.name}
          field={inner}
          value={values[inner.name]}
          onChange={(next) => onChange({ ...values, [inner.name]: next })}
        />
      ))}
    </fieldset>
  );
}

function ListField({ field, value, onChange }: FieldProps) {
  const id = useId();
  const { item } = field;
  const items = Array.isArray(value) ? value : [];
  if (!item) return null;
  return (
    <fieldset class="field field-group">
      <legend class="break-words">{field.title}</legend>
      <FieldNotes id={id} help={field.description} />
      {items.map((one, at) => (
        <div key={at} class="field-item">
          <FormFieldInput
            field={{ ...item, title: `${item.title} ${at + 1}` }}
            value={one}
            onChange={(next) => onChange(items.with(at, next))}
          />
          <button
            type="button"
            class="btn btn-sm btn-quiet"
            onClick={() => onChange(items.filter((_, other) => other !== at))}
          >
            {t.removeItem}
          </button>
        </div>
      ))}
      <button
        type="button"
        class="btn btn-sm btn-outline-quiet justify-self-start"
        onClick={() => onChange([...items, startOf(item)])}
      >
        {t.addItem}
      </button>
    </fieldset>
  );
}
