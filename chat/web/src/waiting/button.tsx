import t from "../texts/waiting";
import { Icon } from "../ui/icon";
import { isWaitingOpen, waitingCount } from "./state";

/** How much waits, and the way there; nothing where nothing does. */
export function WaitingButton({ class: more = "" }: { class?: string }) {
  const count = waitingCount.value;
  if (count === 0) return null;
  return (
    <button
      type="button"
      class={`btn btn-sm btn-outline-quiet waiting-button ${more}`}
      aria-haspopup="dialog"
      aria-label={t.open(count)}
      title={t.open(count)}
      onClick={() => {
        isWaitingOpen.value = true;
      }}
    >
      <Icon name="hand" />
      <span class="bell-number" aria-hidden="true">
        {count}
      </span>
    </button>
  );
}
