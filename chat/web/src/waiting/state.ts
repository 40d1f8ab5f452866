/** What waits for the person: in all their conversations, and what members ask them for. */
import { batch, computed, effect, signal } from "@preact/signals";
import { api } from "../app/boot";
import { reveal } from "../app/place";
import { messageOf } from "../app/toasts";
import { list } from "../store/list";
import t from "../texts/waiting";
import type { Waiting } from "../wire";
import { type About, aboutChat, tell } from "./notify";
import { isUnknown, newOf } from "./steps";

export const waitingItems = signal<Waiting[] | null>(null);
/** Chats of the person in which only an administrator can go on: they wait, and nothing of them waits for the person. */
export const waitingForOthers = signal<ReadonlySet<string>>(new Set());
/** Why it is not known what waits; null: it is. */
export const waitingProblem = signal<string | null>(null);
export const waitingCount = computed(() => waitingItems.value?.length ?? 0);
export const isWaitingOpen = signal(false);
/** What the page is about; the number of waiting things goes before it. */
export const pageTitle = signal(document.title);

/** Something has changed since the list was asked for. */
const isBehind = signal(true);
/** That the server gives at most; with so many, some may be missing. */
const MOST = 100;

let request = 0;
let changes = 0;

/** Something has changed: what is known, and what is on its way, may be from before. */
export function fallBehind(): void {
  changes += 1;
  isBehind.value = true;
}

export async function loadWaiting(): Promise<void> {
  request += 1;
  const mine = request;
  const seen = changes;
  try {
    const items = await api.waiting();
    if (mine !== request) return;
    for (const item of newOf(waitingItems.value, items)) tell(wordsOf(item), aboutOf(item));
    batch(() => {
      waitingItems.value = items;
      waitingProblem.value = null;
      if (seen === changes) isBehind.value = false;
    });
  } catch (error) {
    if (mine === request) waitingProblem.value = messageOf(error); // the next change or connection asks again
  }
}

/** Keep apart which chats wait for the person, and which for somebody else. */
export function tellWhoDecides(): void {
  effect(() => {
    const items = waitingItems.value;
    if (isBehind.value || !items) return;
    const own = new Set(items.map((item) => item.conversation?.id));
    const stopped = (list.value ?? []).filter((row) => row.status === "waiting").map((row) => row.id);
    waitingForOthers.value = new Set(items.length < MOST ? stopped.filter((id) => !own.has(id)) : []);
  });
}

function aboutOf(item: Waiting): About {
  const { conversation, message_id, access_request: request, tool_call: call, asked_by } = item;
  if (conversation) {
    const chat = aboutChat(conversation);
    const open = () => {
      chat.open();
      if (message_id) reveal(message_id);
    };
    return { ...chat, open };
  }
  const open = () => {
    isWaitingOpen.value = true;
  };
  return { id: request?.id ?? call?.id ?? "", title: request?.reason ?? asked_by ?? "", open };
}

function wordsOf({
  tool_call: call,
  input_request: asked,
  access_request: request,
  asked_by,
}: Waiting): string {
  if (request) return t.requestWaits(request.requester, request.name);
  if (call) {
    const name = call.tool.title || call.tool.name;
    if (asked_by) return t.secondPersonWaits(asked_by, name);
    return isUnknown(call) ? t.resolutionWaits(name) : t.approvalWaits(name);
  }
  const server = asked?.server.name ?? "";
  return asked?.kind === "sign_in" ? t.signInWaits(server) : t.questionWaits(server);
}

const PLAIN_ICON = document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href ?? "";
const DOT = '<circle cx="24" cy="8" r="8" fill="#dc2626"/></svg>';
let marked: Promise<string> | null = null;

/** The icon with a dot in its corner, as an address. */
async function markedIcon(): Promise<string> {
  const text = await (await fetch(PLAIN_ICON)).text();
  return `data:image/svg+xml,${encodeURIComponent(text.replace("</svg>", DOT))}`;
}

export function showCount(): void {
  effect(() => {
    const count = waitingCount.value;
    document.title = count ? t.counted(count, pageTitle.value) : pageTitle.value;
  });
  effect(() => {
    // On the icon of the installed app. Browsers that have none for this page refuse, and nothing is lost.
    navigator.setAppBadge?.(waitingCount.value).catch(() => undefined);
  });
  effect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    const isMarked = waitingCount.value > 0;
    if (!icon || (!isMarked && icon.href === PLAIN_ICON)) return;
    if (!isMarked) icon.href = PLAIN_ICON;
    else {
      marked ??= markedIcon();
      // An icon is an ornament: the number stands in the title as well.
      marked.then(
        (address) => {
          if (waitingCount.peek() > 0) icon.href = address;
        },
        () => {
          marked = null;
        },
      );
    }
  });
}
