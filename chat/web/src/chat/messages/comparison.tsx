/** Answers of several models side by side; where there is no room for that, one at a time, with tabs. */
import { useEffect, useState } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { toast } from "../../app/toasts";
import { focusComposer } from "../../sidebar/opening";
import { chooseAnswer, stopTurn } from "../../store/commands";
import { openState } from "../../store/open-conversation";
import type { AnswerItem, ComparisonItem } from "../../store/timeline";
import chat from "../../texts/chat";
import t from "../../texts/comparing";
import { Icon } from "../../ui/icon";
import { duration } from "../../ui/time";
import { usageWords } from "../../ui/usage-words";
import { TURN_IS_ACTIVE, type Turn } from "../../wire";
import { loadModels, models } from "../composer/choice";
import { nameOfAnswer } from "../composer/comparing";
import { CopyAnswer } from "./answer-actions";
import { AnswerBody, messagesOf, textOf } from "./answer-body";

const TONES: Partial<Record<Turn["status"], string>> = {
  completed: "ok",
  failed: "bad",
  interrupted: "bad",
  waiting_for_approval: "warn",
  waiting_for_input: "warn",
};

const nameOf = (item: AnswerItem): string =>
  nameOfAnswer(item.turn).name || openState.value?.conversation?.bud.name || chat.assistant;

const isActive = ({ turn }: AnswerItem): boolean => turn !== null && TURN_IS_ACTIVE.has(turn.status);

function State({ turn }: { turn: Turn }) {
  const isBusy = turn.status === "queued" || turn.status === "running";
  return (
    <span class="comparison-state">
      {isBusy ? (
        <Icon name="loader" class="animate-spin" />
      ) : (
        <span class="dot" data-tone={TONES[turn.status] ?? "muted"} aria-hidden="true" />
      )}
      {t.states[turn.status]}
    </span>
  );
}

function Column({ item, isShown, isAlone }: { item: AnswerItem; isShown: boolean; isAlone: boolean }) {
  const { turn } = item;
  const name = nameOf(item);
  const { provider } = nameOfAnswer(turn);
  const text = textOf(item);
  const use = async () => {
    if (!turn || !(await chooseAnswer(turn.id))) return;
    toast(t.used(name), "ok");
    focusComposer();
  };
  return (
    <section
      class="answer comparison-answer"
      data-shown={isShown}
      aria-label={t.answerOf(name)}
      aria-busy={isActive(item)}
      data-messages={messagesOf(item)}
    >
      <header class="comparison-head">
        <h2 class="min-w-0 grow">
          <span class="block truncate" title={name}>
            {name}
          </span>
          {provider && <span class="block truncate text-xs font-normal text-(--quiet)">{provider}</span>}
        </h2>
        {turn && <State turn={turn} />}
        {turn && isActive(item) && (
          <button
            type="button"
            class="btn btn-xs btn-square btn-outline-quiet"
            aria-label={t.stopOf(name)}
            title={t.stopOf(name)}
            onClick={() => stopTurn(turn.id)}
          >
            <span class="stop-square" aria-hidden="true" />
          </button>
        )}
      </header>
      <div>
        <div class="answer-body">
          <AnswerBody item={item} />
        </div>
      </div>
      <footer class="comparison-foot">
        <p class="comparison-facts">
          {turn?.finished_at && (
            <span title={t.tookTitle}>
              {duration(Date.parse(turn.finished_at) - Date.parse(turn.created_at))}
            </span>
          )}
          {turn?.usage && <span title={chat.usageTitle}>{usageWords(turn.usage)}</span>}
          {text && !isActive(item) && <CopyAnswer text={text} />}
        </p>
        <button
          type="button"
          class="btn btn-sm btn-primary"
          disabled={item.segments.length === 0 || isShutOut.value}
          aria-label={t.useOf(name)}
          title={isAlone ? t.useTitle : t.useStops}
          onClick={() => void use()}
        >
          <Icon name="check" />
          {t.use}
        </button>
      </footer>
    </section>
  );
}

/** What becomes of it if nobody chooses. */
function noteOf({ answers, kept }: ComparisonItem): string {
  if (answers.some(isActive)) return t.isBusy;
  return kept?.turn?.status === "completed" ? t.keeps(nameOf(kept)) : t.keepsNone;
}

export function Comparison({ item }: { item: ComparisonItem }) {
  const [shown, setShown] = useState(0);
  const { answers } = item;
  useEffect(() => {
    if (!models.value) void loadModels();
  }, []);
  const ended = answers.filter((one) => !isActive(one)).length;
  return (
    <section class="comparison" aria-label={t.answers} data-count={answers.length}>
      <div class="comparison-tabs" role="group" aria-label={t.answers}>
        {answers.map((one, at) => (
          <button
            key={one.key}
            type="button"
            class="comparison-tab"
            aria-pressed={at === shown}
            onClick={() => setShown(at)}
          >
            <span class="truncate">{nameOf(one)}</span>
            {one.turn && <State turn={one.turn} />}
          </button>
        ))}
      </div>
      <div class="comparison-columns">
        {answers.map((one, at) => (
          <Column key={one.key} item={one} isShown={at === shown} isAlone={ended === answers.length} />
        ))}
      </div>
      <p class="comparison-note">
        <Icon name="info" />
        <span>{noteOf(item)}</span>
      </p>
      <p class="sr-only" role="status">
        {t.progress(ended, answers.length)}
      </p>
    </section>
  );
}
