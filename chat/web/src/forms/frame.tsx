import type { ComponentChildren } from "preact";
import common from "../texts/common";
import t from "../texts/questions";

interface Notes {
  id: string;
  help?: string | undefined;
  isSecret?: boolean | undefined;
  problem?: string | undefined;
}

/** Attributes of a control that tie it to what stands around it. */
export function describedBy({ id, help, isSecret, problem }: Notes) {
  const notes = [help && `${id}-help`, isSecret && `${id}-secret`, problem && `${id}-problem`].filter(
    Boolean,
  );
  return {
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": notes.length > 0 ? notes.join(" ") : undefined,
  };
}

/** Whether a field must be filled in, beside its title. */
export function Mark({ required }: { required: boolean }) {
  return required ? (
    <span class="required" aria-hidden="true">
      *
    </span>
  ) : (
    <span class="optional">{common.optional}</span>
  );
}

/** What is said of a field, and what is wrong with it. */
export function FieldNotes({ id, help, isSecret, problem }: Notes) {
  return (
    <>
      {help && (
        <p class="help break-words" id={`${id}-help`}>
          {help}
        </p>
      )}
      {isSecret && (
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
}

/** A title, a control and what is said of it. */
export function Framed(props: Notes & { title: string; required: boolean; children: ComponentChildren }) {
  return (
    <div class="field">
      <label class="break-words" for={props.id}>
        {props.title} <Mark required={props.required} />
      </label>
      {props.children}
      <FieldNotes {...props} />
    </div>
  );
}
