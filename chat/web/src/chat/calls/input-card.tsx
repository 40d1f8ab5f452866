import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { isShutOut } from "../../app/connection";
import { isFocusFree } from "../../app/focus";
import { moment } from "../../formats";
import { FormFieldInput } from "../../forms/field";
import {
  ALL_FORMATS,
  type Choice,
  contentOf,
  formFields,
  formProblems,
  initialValues,
} from "../../forms/schema";
import { answerInput } from "../../store/commands";
import { openState } from "../../store/open-conversation";
import common from "../../texts/common";
import { filled } from "../../texts/language";
import t from "../../texts/questions";
import { Icon, type IconName } from "../../ui/icon";
import { forgetKept, useKept } from "../../ui/kept";
import { toComposer } from "../../ui/refocus";
import { duration, useNow } from "../../ui/time";
import {
  type InputAction,
  type InputRequest,
  type Json,
  type JsonObject,
  TURN_IS_ACTIVE,
  type Turn,
} from "../../wire";
import { canOpen, markHost, sampledMessages } from "./elicitation";
import { SignIn, signInOutcome } from "./sign-in-card";

const answersOf = (request: InputRequest): string => `answers.${request.id}`;

type Answer = (action: InputAction, content?: JsonObject) => Promise<void>;

interface PartProps {
  request: InputRequest;
  isBusy: boolean;
  isOver: boolean;
  answer: Answer;
}

function Form({
  request,
  isBusy,
  isOver,
  answer,
  faults,
}: PartProps & { faults: Readonly<Record<string, string[]>> }) {
  const fields = useMemo(
    () => formFields(request.schema, { formats: ALL_FORMATS, startsOff: true }),
    [request.schema],
  );
  const [values, setValues] = useKept(answersOf(request), () => initialValues(fields));
  const [wasTried, setTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const problems = formProblems(fields, values);
  const problemOf = (name: string) => (wasTried && problems[name]) || faults[`content.${name}`]?.[0];
  return (
    <form
      ref={form}
      class="grid gap-3"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (Object.keys(problems).length === 0) void answer("accept", contentOf(fields, values));
        else setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
      }}
    >
      {fields.length === 0 && <p class="text-sm text-(--quiet)">{t.nothingToFill}</p>}
      {fields.map((field) => (
        <FormFieldInput
          key={field.name}
          field={field}
          value={values[field.name]}
          warns
          problem={problemOf(field.name)}
          onChange={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      {faults.content && <p class="field-error">{faults.content[0]}</p>}
      <div class="flex flex-wrap gap-2">
        <button type="submit" class="btn btn-primary btn-sm" disabled={isBusy || isOver}>
          <Icon name={isBusy ? "loader" : "check"} class={isBusy ? "animate-spin" : ""} />
          {t.submit}
        </button>
        <Refusals isBusy={isBusy} isOver={isOver} answer={answer} />
      </div>
    </form>
  );
}

function Refusals({ isBusy, isOver, answer }: Omit<PartProps, "request">) {
  return (
    <>
      <button
        type="button"
        class="btn btn-outline-quiet btn-sm"
        disabled={isBusy || isOver}
        title={t.declineTitle}
        onClick={() => answer("decline")}
      >
        {t.decline}
      </button>
      <button
        type="button"
        class="btn btn-quiet btn-sm"
        disabled={isBusy || isOver}
        title={t.cancelTitle}
        onClick={() => answer("cancel")}
      >
        {common.cancel}
      </button>
    </>
  );
}

function Link({ request, isBusy, isOver, answer }: PartProps) {
  const [wasOpened, setOpened] = useState(false);
  const [before, host, after] = markHost(request.url, request.url_host);
  return (
    <div class="grid gap-3">
      <p class="input-url">
        {before}
        {host && <mark>{host}</mark>}
        {after}
      </p>
      <p class="text-xs text-(--quiet)">
        {filled(t.pageOf, { host: <strong>{request.url_host || t.unknownHost}</strong> })}
      </p>
      <div class="flex flex-wrap gap-2">
        {canOpen(request.url) && (
          <a
            class={`btn btn-sm ${wasOpened ? "btn-outline-quiet" : "btn-primary"}`}
            href={request.url}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => setOpened(true)}
          >
            <Icon name="external" />
            {t.openHost(request.url_host)}
          </a>
        )}
        <button
          type="button"
          class={`btn btn-sm ${wasOpened ? "btn-primary" : "btn-outline-quiet"}`}
          disabled={isBusy || isOver}
          onClick={() => answer("accept")}
        >
          {t.finished}
        </button>
        <button
          type="button"
          class="btn btn-quiet btn-sm"
          disabled={isBusy || isOver}
          onClick={() => answer("decline")}
        >
          {t.decline}
        </button>
      </div>
    </div>
  );
}

const asText = (value: Json | undefined): string => (typeof value === "string" ? value : "");

function Sampling({ request, isBusy, isOver, answer }: PartProps) {
  const { params, model } = request;
  const system = asText(params.systemPrompt);
  const limit = typeof params.maxTokens === "number" ? params.maxTokens : null;
  return (
    <div class="grid gap-3">
      <dl class="asked-facts">
        {model && (
          <>
            <dt>{t.model}</dt>
            <dd>{model}</dd>
          </>
        )}
        {limit !== null && (
          <>
            <dt>{t.limit}</dt>
            <dd>{t.tokens(limit)}</dd>
          </>
        )}
      </dl>
      {system && <Quote label={t.instructions} text={system} />}
      {sampledMessages(params).map((message, i) => (
        <Quote key={i} label={message.role === "assistant" ? t.asAssistant : t.asYou} text={message.text} />
      ))}
      <p class="text-xs text-(--quiet)">{t.modelGets}</p>
      <div class="flex flex-wrap gap-2">
        <button
          type="button"
          class="btn btn-primary btn-sm"
          disabled={isBusy || isOver}
          onClick={() => answer("accept")}
        >
          {t.allow}
        </button>
        <button
          type="button"
          class="btn btn-outline-quiet btn-sm"
          disabled={isBusy || isOver}
          onClick={() => answer("decline")}
        >
          {t.refuse}
        </button>
      </div>
    </div>
  );
}

function Quote({ label, text }: { label: string; text: string }) {
  return (
    <figure class="quoted">
      <figcaption>{label}</figcaption>
      <blockquote>{text}</blockquote>
    </figure>
  );
}

const ICONS: Record<InputRequest["kind"], IconName> = {
  form: "question",
  url: "external",
  sampling: "sparkles",
  sign_in: "key",
};

function Heading({ request }: { request: InputRequest }) {
  const isAway = request.kind === "sign_in" && request.sign_in?.may_connect === false;
  const server = <span class="break-words">{request.server.name}</span>;
  return <>{filled(isAway ? t.notConnected : t.asks[request.kind], { server })}</>;
}

/** What a server asks while one of its tools works: always with its name, and with a way to say no. */
export function InputCard({ request }: { request: InputRequest }) {
  const id = useId();
  const card = useRef<HTMLDivElement>(null);
  const hadFocus = useRef(false);
  const [isBusy, setBusy] = useState(false);
  const [faults, setFaults] = useState<Readonly<Record<string, string[]>>>({});
  const left = Date.parse(request.expires_at) - useNow(1000);
  const isOver = left <= 0;

  useEffect(() => {
    const drawn = card.current;
    if (isFocusFree()) drawn?.focus({ preventScroll: true });
    drawn?.scrollIntoView({ block: "nearest" });
    return () => {
      // Settled elsewhere: the focus that was in it is nowhere now.
      if (hadFocus.current && document.activeElement === document.body) toComposer();
    };
  }, []);

  const answer: Answer = async (action, content) => {
    if (isBusy) return;
    setBusy(true);
    const problem = await answerInput(request.id, action, content);
    if (problem === null) {
      forgetKept(answersOf(request));
      toComposer();
    } else {
      setBusy(false);
      setFaults(problem);
    }
  };
  const shared = { request, isBusy, isOver: isOver || isShutOut.value, answer };
  return (
    <div
      role="group"
      ref={card}
      class="approval"
      data-kind="input"
      tabIndex={-1}
      aria-labelledby={`${id}-title`}
      onFocusIn={() => {
        hadFocus.current = true;
      }}
      onFocusOut={(event) => {
        if (event.relatedTarget) hadFocus.current = false;
      }}
    >
      <div class="approval-head flex items-start gap-3">
        <span class="approval-icon">
          <Icon name={ICONS[request.kind]} />
        </span>
        <div class="min-w-0 grow">
          <h3 id={`${id}-title`} class="text-[0.9375rem]">
            <Heading request={request} />
          </h3>
          {request.tool && (
            <p class="text-sm text-(--quiet) break-words">
              {filled(request.kind === "sign_in" ? t.neededFor : t.whileRunning, {
                tool: <code class="text-xs">{request.tool}</code>,
              })}
            </p>
          )}
        </div>
        <span class="tag shrink-0" data-tone={left < 60_000 ? "warn" : "muted"} title={request.expires_at}>
          <Icon name="clock" />
          {isOver ? common.expired : common.left(duration(Math.max(1000, left)))}
        </span>
      </div>
      {request.message && <p class="input-message">{request.message}</p>}
      {request.warnings.map((warning) => (
        <div key={warning} class="notice" data-tone="warn">
          <Icon name="alert" />
          <span class="break-words">{warning}</span>
        </div>
      ))}
      {request.kind === "form" && <Form {...shared} faults={faults} />}
      {request.kind === "url" && <Link {...shared} />}
      {request.kind === "sampling" && <Sampling {...shared} />}
      {request.kind === "sign_in" && <SignIn {...shared} />}
    </div>
  );
}

function Line({ children }: { children: ComponentChildren }) {
  return <div class="input-line">{children}</div>;
}

/** Questions that came while a resource was read: they belong to no tool's card. */
export function LooseQuestions({ turn }: { turn: Turn }) {
  const state = openState.value;
  if (!state || !TURN_IS_ACTIVE.has(turn.status)) return null;
  const ofCalls = new Set(state.toolCalls.map((call) => call.id));
  const open = state.inputRequests.filter(
    (request) => request.status === "pending" && !ofCalls.has(request.call_id),
  );
  return (
    <>
      {open.map((request) => (
        <InputCard key={request.id} request={request} />
      ))}
    </>
  );
}

/** What became of it: stays readable in the conversation. */
export function AnsweredInput({ request }: { request: InputRequest }) {
  if (request.status === "pending") return null;
  const isAllowed = request.status === "accepted";
  const word =
    request.kind === "sign_in"
      ? signInOutcome(request)
      : request.kind === "sampling" && isAllowed
        ? t.allowedModel
        : request.kind === "url" && isAllowed
          ? t.doneAt(request.url_host)
          : t.outcomes[request.status];
  const fields = request.kind === "form" ? formFields(request.schema, { formats: ALL_FORMATS }) : [];
  const given = request.answer;
  const isRefused = request.status === "refused";
  return (
    <Line>
      <p class="break-words">
        <Icon name={isAllowed ? "circleCheck" : "close"} class="text-(--quiet)" />{" "}
        <strong class="font-medium">{request.server.name}</strong>{" "}
        {request.kind === "sign_in"
          ? t.neededSignIn
          : request.message
            ? t.asked(request.message)
            : isRefused && t.hadQuestion}
      </p>
      <p class="text-(--quiet) break-words">
        {isRefused ? t.notPut(request.warnings[0]) : word}
        {!isRefused && request.answered_at && `, ${moment(request.answered_at)}`}
      </p>
      {given && (
        <dl class="asked-facts">
          {fields
            .filter((field) => field.name in given)
            .map((field) => (
              <>
                <dt key={`${field.name}-t`}>{field.title}</dt>
                <dd key={field.name}>{shown(given[field.name], field.choices)}</dd>
              </>
            ))}
        </dl>
      )}
    </Line>
  );
}

function shown(value: Json | undefined, choices: Choice[]): string {
  if (value === true) return t.answeredYes;
  if (value === false) return t.answeredNo;
  const titleOf = (one: Json) => choices.find((choice) => choice.value === one)?.title ?? String(one);
  return Array.isArray(value) ? value.map(titleOf).join(", ") || t.answeredNone : titleOf(value ?? "");
}
