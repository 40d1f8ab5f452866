import { useEffect, useState } from "preact/hooks";
import { onSignedIn, openSignIn } from "../../pages/sign-in";
import common from "../../texts/common";
import t from "../../texts/questions";
import { Icon } from "../../ui/icon";
import type { InputAction, InputRequest, Json } from "../../wire";

type State = "asking" | "waiting" | "failed";

const words = (value: Json | undefined): string => (typeof value === "string" ? value : "");

interface Props {
  request: InputRequest;
  isBusy: boolean;
  isOver: boolean;
  answer: (action: InputAction) => Promise<void>;
}

/** What a call waits for: an account at its server. Signing in settles it, in this window or in any other. */
export function SignIn({ request, isBusy, isOver, answer }: Props) {
  const [state, setState] = useState<State>("asking");
  const link = request.sign_in;
  const serverId = request.server.id;
  useEffect(
    () =>
      onSignedIn((outcome) => {
        if (outcome.server === serverId && !outcome.ok) setState("failed");
      }),
    [serverId],
  );
  const scopes = Array.isArray(request.params.scopes) ? request.params.scopes.map(String) : [];
  const isOwn = request.params.account === "user";
  const mayConnect = link?.may_connect ?? false;
  return (
    <div class="grid gap-3">
      <dl class="asked-facts">
        <dt>{t.host}</dt>
        <dd>
          <strong>{words(request.params.host) || t.unknown}</strong>
        </dd>
        <dt>{t.account}</dt>
        <dd>{isOwn ? t.ownAccount : t.sharedAccount}</dd>
        {scopes.length > 0 && (
          <>
            <dt>{t.scopes}</dt>
            <dd class="flex flex-wrap gap-1">
              {scopes.map((scope) => (
                <span key={scope} class="tag" data-tone="muted">
                  {scope}
                </span>
              ))}
            </dd>
          </>
        )}
      </dl>
      <div aria-live="polite">
        {state === "waiting" && (
          <p class="flex items-center gap-2 text-sm">
            <Icon name="loader" class="animate-spin" />
            {t.waiting}
          </p>
        )}
        {state === "failed" && (
          <p class="flex items-center gap-2 text-sm">
            <Icon name="alert" />
            {t.signInFailed}
          </p>
        )}
        {!mayConnect && <p class="text-sm">{t.adminMustConnect}</p>}
      </div>
      <div class="flex flex-wrap gap-2">
        {mayConnect && link && !isOver && (
          <a
            class={`btn btn-sm ${state === "waiting" ? "btn-outline-quiet" : "btn-primary"}`}
            href={link.path}
            target="_blank"
            rel="noopener"
            onClick={(event) => {
              // With a key held down the browser does what it is told.
              const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey);
              if (isPlain && openSignIn(link.path)) event.preventDefault();
              setState("waiting");
            }}
          >
            <Icon name={state === "waiting" ? "external" : "key"} />
            {state === "waiting" ? t.openAgain : state === "failed" ? common.tryAgain : t.signIn}
          </a>
        )}
        <button
          type="button"
          class="btn btn-quiet btn-sm"
          disabled={isBusy || isOver}
          title={t.skipTitle}
          onClick={() => answer("decline")}
        >
          {mayConnect ? t.notNow : t.doNotWait}
        </button>
      </div>
    </div>
  );
}

/** What became of it. */
export function signInOutcome(request: InputRequest): string {
  switch (request.status) {
    case "accepted":
      return request.params.account === "user" ? t.signedIn : t.connected;
    case "declined":
      return t.notSignedIn;
    case "expired":
      return t.signInExpired;
    default:
      return t.signInOver;
  }
}
