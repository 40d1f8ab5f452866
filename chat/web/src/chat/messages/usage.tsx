/** What an answer and a conversation have used: tokens, cost where prices are known, and how full the model's window is. */
import { openState } from "../../store/open-conversation";
import { pathTo } from "../../store/paths";
import t from "../../texts/chat";
import { short, usageWords } from "../../ui/usage-words";

/** A small gauge in the header: how much of its window the model has read, and what it all came to. */
export function UsageGauge() {
  const state = openState.value;
  const usage = state?.conversation?.usage;
  if (!state || !usage) return null;
  const path = pathTo(state.messages, state.conversation?.leaf_id ?? null);
  const window = path.findLast((message) => message.context_window)?.context_window;
  const share = window?.limit ? Math.min(1, window.used / window.limit) : null;
  const read = !window
    ? ""
    : window.limit
      ? t.lastReadOf(short(window.used), short(window.limit))
      : t.lastRead(short(window.used));
  const words = read + t.usedInAll(usageWords(usage));
  return (
    <span class="usage-gauge" title={words} role="img" aria-label={words}>
      {share !== null && (
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
          <circle cx="10" cy="10" r="8" class="gauge-rest" pathLength={100} />
          <circle
            cx="10"
            cy="10"
            r="8"
            class="gauge-used"
            data-tone={share > 0.85 ? "warn" : "ok"}
            pathLength={100}
            stroke-dasharray={`${Math.round(share * 100)} 100`}
            transform="rotate(-90 10 10)"
          />
        </svg>
      )}
      <span class="max-[40rem]:hidden">{t.tokens(short(usage.prompt_tokens + usage.completion_tokens))}</span>
    </span>
  );
}
