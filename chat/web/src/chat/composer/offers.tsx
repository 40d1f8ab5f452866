/** The menu over the composer: what fits the words that are being typed after a sign. */
import { useEffect, useState } from "preact/hooks";
import { messageOf, toast } from "../../app/toasts";
import { files } from "../../artifacts/state";
import { ICON_OF } from "../../artifacts/words";
import { keyOf, type Picked, pick, pickFile } from "../../store/attachments";
import { buds } from "../../store/buds";
import choosing from "../../texts/choosing";
import { Icon, type IconName } from "../../ui/icon";
import type { Bud, Prompt, Resource } from "../../wire";
import { answeringBud, findPrompts, findResources, homeOverrides } from "./choice";
import { type CommandName, matchingCommands } from "./choices";
import { matching, titleOf } from "./prompts";
import { byName, type Typed, typedAt } from "./typed";

/** What can be chosen: a command of the chat, a server's prompt, a bud to ask once, or a file to take along. */
export type Offer =
  | { kind: "command"; name: CommandName }
  | { kind: "prompt"; prompt: Prompt }
  | { kind: "bud"; bud: Bud }
  | { kind: "take"; one: Picked; icon: IconName; about: string };

interface Offers {
  /** What the menu shows; null: nothing is being typed that it could complete. */
  shown: Offer[] | null;
  /** There are others, which more letters lead to. */
  hasMore: boolean;
  typed: Typed | null;
  at: number;
  setAt: (at: number) => void;
  dismiss: () => void;
}

const MOST = 30;
const WAIT_MS = 150;

/** The prompts whose names hold the word, of a chat's servers or of the next one's; `null` as the word: none is wanted. */
function usePrompts(conversationId: string | undefined, word: string | null): Prompt[] {
  const [prompts, setPrompts] = useState<Prompt[]>([]);
  const bud = answeringBud.value?.id;
  const overrides = homeOverrides.value;
  useEffect(() => setPrompts([]), [conversationId, bud, overrides]);
  useEffect(() => {
    if (word === null) return;
    let isCurrent = true;
    const timer = setTimeout(
      () => {
        findPrompts(conversationId, word).then(
          (rows) => isCurrent && setPrompts(rows),
          (error) => isCurrent && toast(messageOf(error), "bad"),
        );
      },
      word === "" ? 0 : WAIT_MS,
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [conversationId, bud, overrides, word]);
  return prompts;
}

/** The resources whose names hold the word, of a chat or of the next one; `null` as the word: none is wanted. */
function useResources(conversationId: string | undefined, word: string | null): Resource[] {
  const [rows, setRows] = useState<Resource[]>([]);
  const bud = answeringBud.value?.id;
  const overrides = homeOverrides.value;
  useEffect(() => {
    if (word === null) {
      setRows([]);
      return;
    }
    let isCurrent = true;
    const timer = setTimeout(() => {
      findResources(conversationId, word).then(
        (found) => isCurrent && setRows(found.filter((row) => !row.is_template)),
        () => isCurrent && setRows([]), // the conversation's files are still offered
      );
    }, WAIT_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [conversationId, bud, overrides, word]);
  return rows;
}

function fitting(typed: Typed, prompts: readonly Prompt[], resources: readonly Resource[]): Offer[] {
  const { sign, word } = typed;
  if (sign === "/") {
    return [
      ...matchingCommands(word).map((name): Offer => ({ kind: "command", name })),
      ...matching(prompts, word).map((prompt): Offer => ({ kind: "prompt", prompt })),
    ];
  }
  if (sign === "@") {
    return byName(buds.value ?? [], (bud) => bud.name, word).map((bud): Offer => ({ kind: "bud", bud }));
  }
  const there = files.value.filter((file) => !file.is_deleted);
  return [
    ...byName(there, (file) => file.name, word).map(
      (file): Offer => ({
        kind: "take",
        one: pickFile(file),
        icon: ICON_OF[file.version.kind],
        about: choosing.fileOfChat,
      }),
    ),
    ...resources.map(
      (row): Offer => ({ kind: "take", one: pick(row), icon: "fileText", about: row.server.name }),
    ),
    // Also where there is nothing yet, as on the start page.
    ...(word === "" ? [{ kind: "command", name: "file" } as const] : []),
  ];
}

/**
 * What fits the words before the caret; null: nobody is writing. Names that fit nothing are plain text, and show no
 * menu.
 */
export function useOffers(conversationId: string | undefined, text: string, caret: number | null): Offers {
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState<string | null>(null);
  const typed = caret === null ? null : typedAt(text, caret);
  const key = typed && `${typed.sign}${typed.word}`;
  const prompts = usePrompts(conversationId, typed?.sign === "/" ? typed.word : null);
  const resources = useResources(conversationId, typed?.sign === "#" ? typed.word : null);
  useEffect(() => setAt(0), [key]);
  const all = typed && dismissed !== text ? fitting(typed, prompts, resources) : null;
  const found = all && all.slice(0, MOST);
  const isShown = found !== null && (typed?.sign === "/" || found.length > 0);
  return {
    shown: isShown ? found : null,
    hasMore: (all?.length ?? 0) > MOST,
    typed,
    at: Math.max(0, Math.min(at, (found?.length ?? 0) - 1)),
    setAt,
    dismiss: () => setDismissed(text),
  };
}

const COMMAND_ICONS: Record<CommandName, IconName> = {
  bud: "sprout",
  model: "sparkles",
  compare: "columns",
  file: "paperclip",
  search: "search",
  tools: "plug",
  new: "compose",
  temporary: "temporary",
};

export const OFFERS_ID = "composer-offers";
export const offerId = (at: number): string => `${OFFERS_ID}-${at}`;

const LABELS = { "/": choosing.commands, "@": choosing.askOnce, "#": choosing.takeAlong };

function keyOfOffer(offer: Offer): string {
  if (offer.kind === "command") return offer.name;
  if (offer.kind === "prompt") return offer.prompt.id;
  return offer.kind === "bud" ? offer.bud.id : keyOf(offer.one);
}

export function OfferMenu({
  shown,
  hasMore,
  typed,
  at,
  onChoose,
}: {
  shown: Offer[];
  hasMore: boolean;
  typed: Typed;
  at: number;
  onChoose: (offer: Offer) => void;
}) {
  useEffect(() => {
    document.getElementById(offerId(at))?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <div class="commands" id={OFFERS_ID} role="listbox" aria-label={LABELS[typed.sign]}>
      {shown.length === 0 && <p class="p-3 text-sm text-(--quiet)">{choosing.noCommand}</p>}
      {shown.map((offer, i) => (
        <div
          key={keyOfOffer(offer)}
          id={offerId(i)}
          class="search-row"
          role="option"
          tabIndex={-1}
          aria-selected={i === at}
          onMouseDown={(event) => {
            event.preventDefault(); // the focus stays where one types
            onChoose(offer);
          }}
        >
          <OfferFace offer={offer} />
        </div>
      ))}
      {hasMore && <p class="px-3 py-2 text-xs text-(--quiet)">{choosing.moreMatches}</p>}
    </div>
  );
}

function OfferFace({ offer }: { offer: Offer }) {
  if (offer.kind === "command") {
    return (
      <>
        <Icon name={COMMAND_ICONS[offer.name]} class="text-(--quiet)" />
        <span class="min-w-0 grow truncate">
          <span class="font-medium">/{offer.name}</span>{" "}
          <span class="text-xs text-(--quiet)">{choosing.commandTitles[offer.name]}</span>
        </span>
      </>
    );
  }
  if (offer.kind === "prompt") {
    const { prompt } = offer;
    return (
      <>
        <Icon name="slash" class="text-(--quiet)" />
        <Face name={titleOf(prompt)} beside={prompt.server.name} about={prompt.description} />
      </>
    );
  }
  if (offer.kind === "bud") {
    const { bud } = offer;
    return (
      <>
        <span aria-hidden="true">{bud.avatar || "🌱"}</span>
        <Face name={bud.name} beside={bud.model.name} about={bud.description} />
      </>
    );
  }
  return (
    <>
      <Icon name={offer.icon} class="text-(--quiet)" />
      <Face name={offer.one.title} beside={offer.about} about="" />
    </>
  );
}

function Face({ name, beside, about }: { name: string; beside: string; about: string }) {
  return (
    <span class="min-w-0 grow">
      <span class="block truncate">
        <span class="font-medium">{name}</span> <span class="text-xs text-(--quiet)">{beside}</span>
      </span>
      {about && <span class="block truncate text-xs text-(--quiet)">{about}</span>}
    </span>
  );
}
