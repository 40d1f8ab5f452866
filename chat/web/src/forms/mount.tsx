/** A form of a schema on a page that Django draws. */
import { render } from "preact";
import { useState } from "preact/hooks";
import type { JsonObject } from "../wire";
import { FormFieldInput } from "./field";
import { contentOf, type FormField, formFields, initialValues, type Values } from "./schema";

const FORMATS: ReadonlySet<string> = new Set(["date"]);
const DEPTH = 4;

function SchemaForm({ fields, onChange }: { fields: FormField[]; onChange: (content: JsonObject) => void }) {
  const [values, setValues] = useState<Values>(() => initialValues(fields));
  return (
    <div class="grid gap-3">
      {fields.map((field) => (
        <FormFieldInput
          key={field.name}
          field={field}
          value={values[field.name]}
          onChange={(value) => {
            const next = { ...values, [field.name]: value };
            setValues(next);
            onChange(contentOf(fields, next));
          }}
        />
      ))}
    </div>
  );
}

/** Draw the form into a box; `onChange` hears what it holds, and what it begins with. */
export function drawForm(
  box: HTMLElement,
  schema: JsonObject,
  onChange: (content: JsonObject) => void,
): void {
  const fields = formFields(schema, { formats: FORMATS, depth: DEPTH });
  render(<SchemaForm fields={fields} onChange={onChange} />, box);
  onChange(contentOf(fields, initialValues(fields)));
}
