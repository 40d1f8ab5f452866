/** What the model thought before it spoke: folded, since it is no answer. */
import { Markdown } from "../../markdown/markdown";
import t from "../../texts/chat";
import { Icon } from "../../ui/icon";
import type { Message } from "../../wire";

export function Reasoning({ message }: { message: Message }) {
  const isThinking = message.status === "streaming" && message.text === "";
  return (
    <details class="reasoning">
      <summary class="link-quiet text-sm">
        <Icon name="sparkles" class={isThinking ? "animate-pulse" : ""} />
        {isThinking ? t.thinkingNow : t.thoughts}
      </summary>
      <div class="reasoning-text">
        <Markdown text={message.reasoning} isStreaming={message.status === "streaming"} />
      </div>
    </details>
  );
}
