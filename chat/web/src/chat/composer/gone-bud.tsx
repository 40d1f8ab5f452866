import t from "../../texts/choosing";
import { Icon } from "../../ui/icon";
import { chooser, goneBud, goneInWords } from "./choice";

/** Says that the chat's bud is archived or no longer for this person; as long as it is. */
export function GoneBud() {
  if (!goneBud.value) return null;
  return (
    <div class="composer-notice" role="status">
      <Icon name="archive" class="text-(--quiet)" />
      <span class="min-w-0 grow basis-56">{goneInWords(goneBud.value)}</span>
      <button
        type="button"
        class="btn btn-xs btn-outline-quiet"
        onClick={() => {
          chooser.value = "buds";
        }}
      >
        {t.chooseAnother}
      </button>
    </div>
  );
}
