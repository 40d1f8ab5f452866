import type { RefObject } from "preact";
import t from "../../texts/calls";
import common from "../../texts/common";

/** Why calls are refused, in the person's own words. */
export function RefusalReason(props: {
  id: string;
  field: RefObject<HTMLInputElement | null>;
  reason: string;
  onReason: (reason: string) => void;
}) {
  const { id, field, reason, onReason } = props;
  return (
    <div class="field">
      <label for={id}>
        {t.refuseWhy} <span class="optional">{common.optional}</span>
      </label>
      <input
        ref={field}
        id={id}
        maxLength={500}
        autocomplete="off"
        value={reason}
        onInput={(event) => onReason(event.currentTarget.value)}
      />
    </div>
  );
}
