import { useEffect, useState } from "preact/hooks";
import { boot } from "../app/boot";
import { place } from "../app/place";
import { ServerTile } from "../app/server-tile";
import {
  answeringModel,
  chooseHomeBud,
  forgetHomeChoice,
  homeBud,
  homeChoice,
  homePlace,
} from "../chat/composer/choice";
import { isDemoAnswering } from "../chat/composer/choices";
import { AnswerLine } from "../chat/composer/chooser";
import { Composer } from "../chat/composer/composer";
import { uploadsOf } from "../chat/composer/uploads";
import { DemoLabel, Header, TemporaryLine } from "../chat/header";
import { OutgoingMessage } from "../chat/messages/outgoing";
import { type Beginning, beginnings, keepBeginning, startConversation } from "../chat/sending";
import { hourOf } from "../formats";
import { folders } from "../sidebar/folders";
import { focusComposer } from "../sidebar/opening";
import { buds, budsProblem, loadBuds } from "../store/buds";
import type { Asked } from "../store/conversation";
import { HOME, moveTyped, setNextTemporary } from "../store/draft";
import { isNextTemporary } from "../store/temporary";
import chat from "../texts/chat";
import common from "../texts/common";
import folderTexts from "../texts/folders";
import t from "../texts/home";
import { filled } from "../texts/language";
import shell from "../texts/shell";
import { Icon } from "../ui/icon";
import { pageTitle } from "../waiting/state";
import type { Bud } from "../wire";

function greeting(): string {
  const hour = hourOf(Date.now());
  const name = boot.user.name.split(" ")[0];
  const words =
    hour < 5 || hour >= 18 ? t.greetings.evening : hour < 12 ? t.greetings.morning : t.greetings.afternoon;
  return name ? t.greeting(words, name) : words;
}

async function begin(bud: Bud, text: string, asked?: Asked): Promise<Beginning> {
  const beginning = await startConversation(bud, text, homeChoice(bud), asked, forgetHomeChoice);
  if (beginning !== "failed") setNextTemporary(false);
  if (beginning === "open" || beginning === "begun") forgetHomeChoice();
  return beginning;
}

function ServerLine({ bud }: { bud: Bud }) {
  if (bud.servers.length === 0 && !bud.takes_all_tools) return <p class="bud-servers">{t.noTools}</p>;
  return (
    <p class="bud-servers">
      {bud.takes_all_tools && <span>{t.allTools}</span>}
      {bud.servers.map((server) => {
        const isGood = server.status === "connected";
        return (
          <span key={server.id} class="inline-flex items-center gap-1.5">
            <span class="dot" data-tone={isGood ? "ok" : server.status === "error" ? "bad" : "warn"} />
            <ServerTile id={server.id} name={server.name} />
            {server.name}
            <span class="sr-only">{t.serverStatus[server.status]}</span>
          </span>
        );
      })}
    </p>
  );
}

function BudCard({ bud, isChosen, onChoose }: { bud: Bud; isChosen: boolean; onChoose: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const start = async (prompt: string) => {
    setBusy(true);
    if ((await begin(bud, prompt)) !== "open") setBusy(false);
  };
  return (
    <li class="bud-card" data-chosen={isChosen}>
      <button type="button" class="bud-face" aria-pressed={isChosen} onClick={onChoose}>
        <span class="avatar-tile" data-colour={bud.colour} aria-hidden="true">
          {bud.avatar || "🌱"}
        </span>
        <span class="min-w-0 grow text-left">
          <span class="block font-semibold truncate">{bud.name}</span>
          <span class="block text-sm text-(--quiet) line-clamp-2">{bud.description}</span>
        </span>
        <Icon name="check" class={isChosen ? "text-(--color-primary)" : "invisible"} />
      </button>
      <ServerLine bud={bud} />
      {(boot.workspace.can_manage_buds || bud.members_may_edit) && (
        <a class="bud-edit link-quiet" href={`${boot.urls.buds}${bud.id}/`} aria-label={t.editBud(bud.name)}>
          {common.edit}
        </a>
      )}
      {bud.starter_prompts.length > 0 && (
        <ul class="grid gap-1.5">
          {bud.starter_prompts.slice(0, 3).map((prompt) => (
            <li key={prompt}>
              <button type="button" class="starter" disabled={isBusy} onClick={() => start(prompt)}>
                {prompt}
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Buds({ chosen, choose }: { chosen: Bud | undefined; choose: (bud: Bud) => void }) {
  if (budsProblem.value && !buds.value) {
    return (
      <div class="empty-state">
        <Icon name="alert" />
        <p>{budsProblem.value}</p>
        <button type="button" class="btn btn-sm btn-outline-quiet" onClick={() => loadBuds()}>
          {common.tryAgain}
        </button>
      </div>
    );
  }
  if (!buds.value) {
    return (
      <div class="bud-grid" aria-busy="true">
        <span class="sr-only">{t.loadingBuds}</span>
        {[1, 2].map((n) => (
          <div key={n} class="bud-card">
            <div class="skeleton-line w-1/2" />
            <div class="skeleton-line w-11/12" />
            <div class="skeleton-line w-4/5" />
          </div>
        ))}
      </div>
    );
  }
  if (buds.value.length === 0) {
    return (
      <div class="empty-state">
        <Icon name="sprout" />
        <h2>{t.noBuds}</h2>
        <p>{t.noBudsText}</p>
        {boot.workspace.can_manage_buds ? (
          <a class="btn btn-sm btn-primary" href={`${boot.urls.buds}new/`}>
            {t.makeBud}
          </a>
        ) : (
          <p>{t.othersMakeBuds}</p>
        )}
      </div>
    );
  }
  return (
    <ul class="bud-grid">
      {buds.value.map((bud) => (
        <BudCard
          key={bud.id}
          bud={bud}
          isChosen={bud.id === chosen?.id}
          onChoose={() => {
            choose(bud);
            focusComposer();
          }}
        />
      ))}
    </ul>
  );
}

/** Into which folder the chat goes: the one that the sidebar shows. */
function FolderNote() {
  const folder = folders.value.find((one) => one.id === homePlace().folder_id);
  return folder ? filled(folderTexts.beginsIn, { folder: <strong>{folder.name}</strong> }) : null;
}

function TemporarySwitch() {
  const isOn = isNextTemporary.value;
  return (
    <button
      type="button"
      class="btn btn-sm btn-quiet"
      aria-pressed={isOn}
      aria-label={shell.temporary}
      onClick={() => {
        setNextTemporary(!isOn);
        focusComposer();
      }}
    >
      <Icon name="temporary" />
      <span class="max-sm:hidden">{shell.temporary}</span>
    </button>
  );
}

/** The demo model is told of beside the title. */
const modelOf = (bud: Bud): string | undefined => (bud.model.is_demo ? undefined : bud.model.name);

/** What the message field says before somebody writes; nobody can while there is no bud. */
function placeholderFor(bud: Bud | null | undefined): string {
  if (bud) return chat.messageTo(bud.name);
  return buds.value?.length === 0 ? t.writeOnce : chat.message;
}

/** What can be done about the demo model depends on who reads it. */
function demoText(urls: typeof boot.urls): string {
  if (urls.own_model) return t.demoTextUnused;
  return urls.providers ? t.demoText : t.demoTextMember;
}

export function Home() {
  const chosen = homeBud.value;
  // Of the bud that answers, as in its chats; where none is known, of the workspace.
  const isDemo = isDemoAnswering(chosen, answeringModel.value, boot.demo_model);
  useEffect(() => {
    pageTitle.value = t.pageTitle(boot.workspace.name);
  }, []);
  return (
    <>
      <Header>
        <div class="min-w-0 grow">
          <p class="chat-title">{common.newChat}</p>
          {chosen && <AnswerLine bud={chosen.name} model={answeringModel.value?.name ?? modelOf(chosen)} />}
        </div>
        {isDemo && <DemoLabel />}
        <TemporarySwitch />
      </Header>
      {isNextTemporary.value && <TemporaryLine />}
      <div class="chat-scroll">
        <div class="home-column">
          <h1 class="home-title">{greeting()}</h1>
          <p class="home-lead">
            {chosen ? filled(t.talkTo, { bud: <strong>{chosen.name}</strong> }) : t.ask} <FolderNote />
          </p>
          <Composer
            draftKey={HOME}
            label={chosen ? chat.messageTo(chosen.name) : chat.message}
            placeholder={placeholderFor(chosen)}
            isDisabled={!boot.is_kept && buds.value?.length === 0}
            isWaiting={!chosen && !boot.is_kept}
            onSend={async (text, _, asked) => {
              if (chosen) {
                const beginning = await begin(chosen, text, asked);
                if (beginning === "open" && place.value && uploadsOf(place.value).length === 0)
                  moveTyped(place.value);
                return beginning !== "failed";
              }
              keepBeginning(text, null, homePlace(), asked);
              setNextTemporary(false);
              return true;
            }}
            hint={isDemo ? t.demoHint : undefined}
          />
          {beginnings.value.map((one) => (
            <OutgoingMessage key={one.client_id} outgoing={one} />
          ))}
          {isDemo && !boot.is_kept && (
            <div class="notice" data-tone="warn">
              <Icon name="info" />
              <span>
                {filled(demoText(boot.urls), { model: <strong>{t.demoModel}</strong> })}{" "}
                {(boot.urls.own_model ?? boot.urls.providers) && (
                  <a class="link-brand" href={boot.urls.own_model ?? boot.urls.providers ?? ""}>
                    {boot.urls.own_model ? t.useModel : t.connectModel}
                  </a>
                )}
              </span>
            </div>
          )}
          {!boot.is_kept && (
            <>
              <h2 class="home-heading">{t.budsOf(boot.workspace.name)}</h2>
              <Buds chosen={chosen} choose={(bud) => chooseHomeBud(bud.id)} />
            </>
          )}
        </div>
      </div>
    </>
  );
}
