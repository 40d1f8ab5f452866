import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { boot } from "../../app/boot";
import { isShutOut } from "../../app/connection";
import { isByKeys, isFocusFree } from "../../app/focus";
import { toast } from "../../app/toasts";
import { FileOfCall } from "../../artifacts/button";
import { sizeWord } from "../../artifacts/words";
import { askAlways, decide, decideForOther } from "../../store/commands";
import t from "../../texts/calls";
import common from "../../texts/common";
import { filled } from "../../texts/language";
import { Icon } from "../../ui/icon";
import { JsonView } from "../../ui/json-tree";
import { forgetKept, useKept } from "../../ui/kept";
import { Menu, MenuButton } from "../../ui/menu";
import { toComposer } from "../../ui/refocus";
import { duration, useNow } from "../../ui/time";
import type { ToolCall } from "../../wire";
import { ArgumentEditor } from "./argument-editor";
import { Badges } from "./badges";
import {
  argumentsOf,
  editArguments,
  hasOtherArguments,
  isBeingEdited,
  leaveArguments,
} from "./edited-arguments";
import { RefusalReason } from "./refusal-reason";

/** Enter pressed for something else while the card appears must not approve it. */
const GUARD_MS = 350;

interface Props {
  call: ToolCall;
  /** Who asked, where the person looks at the call as a second person. */
  askedBy?: string;
  onDecided?: () => void;
}

/** The next call in the chat that waits for a decision, else the first one; null: no other does. */
function nextCard(card: HTMLElement | null): HTMLElement | null {
  const all = [...document.querySelectorAll<HTMLElement>(".chat-column .approval")];
  const place = card ? all.indexOf(card) : -1;
  return all[place + 1] ?? all.find((other) => other !== card) ?? null;
}

/** The card that got the focus by itself, and when. */
let given: { card: HTMLElement | null; at: number } = { card: null, at: 0 };

/**
 * Take the focus from nobody; only from a card below that had just got it: cards of one step come in any order, and
 * people begin with the first one. Until the guard ends, no key has decided anything there.
 */
function beginAt(card: HTMLElement): void {
  const holds = document.activeElement;
  const isBelow = card.compareDocumentPosition(holds ?? card) & Node.DOCUMENT_POSITION_FOLLOWING;
  const wasGiven = holds === given.card && performance.now() - given.at < GUARD_MS;
  if (!isFocusFree() && !(isBelow && wasGiven)) return;
  card.focus({ preventScroll: true });
  given = { card, at: performance.now() };
}

export function ApprovalCard({ call, askedBy, onDecided }: Props) {
  const id = useId();
  const card = useRef<HTMLDivElement>(null);
  const note = useRef<HTMLInputElement>(null);
  const appeared = useRef(performance.now());
  /** Null: nobody is refusing it. */
  const [reason, setReason] = useKept<string | null>(`refusal.${call.id}`, () => null);
  const isRefusing = reason !== null;
  const wasRefusing = useRef(isRefusing);
  const [isBusy, setBusy] = useState(false);
  const [asksAlways, setAsksAlways] = useState(false);
  const expires = call.approval ? Date.parse(call.approval.expires_at ?? "") : Number.NaN;
  const left = expires - useNow(1000);
  const isOver = left <= 0;
  /** A rule wants somebody else to allow it: whoever asked can only take it back. */
  const isForOther = call.approval?.needs_second_person === true && askedBy === undefined;
  const isEditing = isBeingEdited(call);
  const args = argumentsOf(call);
  const isEdited = hasOtherArguments(call);

  useEffect(() => {
    if (card.current) beginAt(card.current);
    card.current?.scrollIntoView({ block: "nearest" });
  }, []);
  useLayoutEffect(() => {
    if (isRefusing && !wasRefusing.current) note.current?.focus();
    wasRefusing.current = isRefusing;
  }, [isRefusing]);

  useLayoutEffect(
    () => () => {
      // Decided elsewhere. What somebody was writing is no message.
      const active = document.activeElement;
      if (card.current?.contains(active) && !active?.matches("input, textarea")) toComposer();
    },
    [],
  );

  const act = async (decision: "approve" | "refuse", extra: Parameters<typeof decide>[2]) => {
    if (isBusy) return;
    setBusy(true);
    const next = isByKeys() ? nextCard(card.current) : null;
    if (askedBy !== undefined) {
      await decideForOther(call.id, decision, extra?.note ?? "");
      setBusy(false);
      // Also where somebody else was quicker.
      onDecided?.();
      return;
    }
    const worked = await decide(call.id, decision, extra);
    if (!worked) setBusy(false);
    else {
      if (extra?.remember)
        toast((extra.remember === "everywhere" ? t.allowedAlways : t.allowedHere)(title), "ok", {
          label: t.permissions,
          run: () => location.assign(boot.urls.permissions),
        });
      leaveArguments(call);
      forgetKept(`refusal.${call.id}`);
      if (next?.isConnected) next.focus();
      else toComposer();
    }
  };
  /** This call waits on: what is chosen is about those to come. */
  const askEachTime = async (toolId: string) => {
    setAsksAlways(await askAlways(toolId));
    card.current?.focus({ preventScroll: true });
  };
  const approve = () => {
    if (args === null || isOver || isForOther || isShutOut.value) return;
    void act("approve", isEdited ? { arguments: args } : {});
  };
  const canRemember =
    askedBy === undefined &&
    boot.remembers_permissions &&
    call.approval?.can_remember === true &&
    !asksAlways &&
    !isEdited &&
    !isOver &&
    !isBusy;
  const tool = call.builtin ? null : call.tool.id;
  const title = call.tool.title || call.tool.name;
  const isBlank = Object.keys(call.arguments).length === 0;

  return (
    <div
      role="group"
      ref={card}
      class="approval"
      tabIndex={-1}
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-why`}
      onFocus={(event) => {
        // The key that decided the call before decides nothing here.
        if (event.target === card.current) appeared.current = performance.now();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.repeat || event.target !== card.current) return;
        event.preventDefault();
        if (performance.now() - appeared.current > GUARD_MS) approve();
      }}
    >
      <div class="approval-head flex items-start gap-3">
        <span class="approval-icon">
          <Icon name="hand" />
        </span>
        <div class="min-w-0 grow">
          <h3 id={`${id}-title`} class="text-[0.9375rem]">
            {filled(isForOther ? t.waitsTitle : askedBy === undefined ? t.allowTitle : t.allowForTitle, {
              tool: <span class="break-words">{title}</span>,
              person: <span class="break-words">{askedBy}</span>,
            })}
          </h3>
          <p class="text-sm text-(--quiet) break-words">
            {call.server
              ? filled(t.on, { server: <strong class="font-medium">{call.server.name}</strong> })
              : t.builtIn}
            {call.tool.title && call.tool.title !== call.tool.name && (
              <>
                {" "}
                · <code class="text-xs">{call.tool.name}</code>
              </>
            )}
          </p>
        </div>
        {!Number.isNaN(expires) && (
          <span
            class="tag shrink-0"
            data-tone={left < 60_000 ? "warn" : "muted"}
            title={call.approval?.expires_at ?? undefined}
          >
            <Icon name="clock" />
            {isOver ? common.expired : common.left(duration(Math.max(1000, left)))}
          </span>
        )}
      </div>
      <div class="flex flex-wrap gap-1.5">
        <Badges annotations={call.annotations} />
        {call.approval?.credential && (
          <span class="tag" data-tone="muted">
            <Icon name="key" />
            {call.approval.credential === "personal" ? t.personalAccount : t.workspaceAccount}
          </span>
        )}
      </div>
      {call.approval && (
        <>
          <p id={`${id}-why`} class="text-sm">
            {call.approval.reason}
          </p>
          {isForOther && (
            <p class="text-sm font-medium">
              {call.approval.call_rule
                ? t.waitsForAdminByRule(call.approval.call_rule.name)
                : t.waitsForAdmin}
            </p>
          )}
          {call.approval.call_rule && boot.urls.call_rules && (
            <p class="text-sm">
              {filled(t.callRule, {
                rule: (
                  <a class="link-brand" href={`${boot.urls.call_rules}${call.approval.call_rule.id}/`}>
                    {call.approval.call_rule.name}
                  </a>
                ),
              })}
            </p>
          )}
          <details class="text-sm text-(--quiet)">
            <summary class="link-quiet text-xs">{t.details}</summary>
            {filled(t.rule, { rule: <code class="text-xs">{call.approval.rule}</code> })}
          </details>
        </>
      )}
      {call.builtin === "send_artifact_to_mcp" && call.artifact && (
        <div class="notice" data-tone="info">
          <Icon name="upload" />
          <span class="break-words">
            {filled(
              t.sendsFile(call.artifact.version, call.artifact.content_type, sizeWord(call.artifact.size)),
              {
                file: <strong class="font-medium">{call.artifact.name}</strong>,
                tool: (
                  <strong class="font-medium">
                    {call.server?.name}.{call.tool.name}
                  </strong>
                ),
              },
            )}
          </span>
        </div>
      )}
      {call.builtin && askedBy === undefined && <FileOfCall call={call} />}
      <div class="grid gap-2">
        <div class="flex items-center justify-between gap-2">
          <h4 class="text-xs font-semibold text-(--quiet)">{t.receives}</h4>
          {!isEditing && !isShutOut.value && !call.builtin && !isForOther && askedBy === undefined && (
            <button type="button" class="copy-button" onClick={() => editArguments(call, call.arguments)}>
              <Icon name="pencil" />
              {common.edit}
            </button>
          )}
          {isEditing && (
            <button type="button" class="copy-button" onClick={() => leaveArguments(call)}>
              {t.undoChanges}
            </button>
          )}
        </div>
        {isEditing ? (
          <ArgumentEditor
            schema={call.input_schema}
            value={args ?? call.arguments}
            onChange={(next) => editArguments(call, next)}
          />
        ) : isBlank ? (
          <p class="text-sm text-(--quiet)">{t.noArguments}</p>
        ) : (
          <JsonView value={call.arguments} />
        )}
      </div>
      {isShutOut.value ? (
        <p class="text-sm text-(--quiet)">{t.cannotDecide}</p>
      ) : isRefusing ? (
        <form
          class="grid gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            void act("refuse", reason?.trim() ? { note: reason.trim() } : {});
          }}
        >
          <RefusalReason id={`${id}-note`} field={note} reason={reason ?? ""} onReason={setReason} />
          <div class="flex flex-wrap gap-2">
            <button type="submit" class="btn btn-error btn-sm" disabled={isBusy}>
              {t.refuseCall}
            </button>
            <button type="button" class="btn btn-quiet btn-sm" onClick={() => setReason(null)}>
              {t.back}
            </button>
          </div>
        </form>
      ) : (
        <div class="flex flex-wrap items-center gap-2">
          {!isForOther && (
            <button
              type="button"
              class="btn btn-primary btn-sm"
              disabled={isBusy || args === null || isOver}
              onClick={approve}
            >
              <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
              {isEdited ? t.allowChanged : t.allowOnce}
            </button>
          )}
          {canRemember && (
            <Menu
              label={t.always}
              buttonClass="btn btn-outline-quiet btn-sm"
              button={
                <>
                  {t.always} <Icon name="chevronDown" />
                </>
              }
            >
              <MenuButton icon="compose" onClick={() => act("approve", { remember: "conversation" })}>
                {t.alwaysHere}
              </MenuButton>
              <MenuButton icon="wrench" onClick={() => act("approve", { remember: "everywhere" })}>
                {t.alwaysEverywhere}
              </MenuButton>
              {tool !== null && (
                <MenuButton icon="hand" onClick={() => askEachTime(tool)}>
                  {t.asksAlways}
                </MenuButton>
              )}
            </Menu>
          )}
          <button
            type="button"
            class="btn btn-outline-quiet btn-sm"
            disabled={isBusy || isOver}
            onClick={() => setReason("")}
          >
            {isForOther ? t.takeBack : t.refuseMore}
          </button>
          {asksAlways ? (
            <p class="w-full text-sm" role="status">
              <a class="link-brand" href={boot.urls.permissions}>
                {t.asksAlwaysNow}
              </a>
            </p>
          ) : (
            !canRemember && !isForOther && <span class="text-xs text-(--quiet)">{t.onlyOnce}</span>
          )}
        </div>
      )}
    </div>
  );
}
