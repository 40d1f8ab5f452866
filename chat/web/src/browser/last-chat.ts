/** What a tab remembers of the chat while other pages are open in it. */

import type { ChosenModel, McpConfigOverrides } from "../wire";
import { note, noted } from "./tab-memory";

const CHAT = "trellis.last_chat";
const HOME = "trellis.home";
const ASKED = "trellis.asked";

/** What the start page has chosen for the next conversation. */
export interface HomeChoice {
  bud: string | null;
  model: ChosenModel | null;
  overrides: McpConfigOverrides;
  is_temporary: boolean;
}

/** Remember which page of the chat is open. */
export const noteChat = (path: string): void => note(CHAT, path);

/** Remember what is chosen there, for this person in this workspace. */
export const noteHome = (whose: string, choice: HomeChoice): void =>
  note(HOME, JSON.stringify({ ...choice, whose }));

export function notedHome(whose: string): HomeChoice | null {
  try {
    const kept = JSON.parse(noted(HOME) ?? "null") as (HomeChoice & { whose: string }) | null;
    return kept?.whose === whose ? kept : null;
  } catch {
    return null;
  }
}

type OfDrafts<Value> = Readonly<Record<string, Value>>;

/** Remember whom the next message of each draft asks: the words of the draft are kept too. */
export const noteAsked = <Value>(whose: string, kind: string, of: OfDrafts<Value>): void =>
  note(`${ASKED}.${kind}`, JSON.stringify({ whose, of }));

export function notedAsked<Value>(whose: string, kind: string): OfDrafts<Value> {
  try {
    const kept = JSON.parse(noted(`${ASKED}.${kind}`) ?? "null") as {
      whose: string;
      of: OfDrafts<Value>;
    } | null;
    return kept?.whose === whose ? kept.of : {};
  } catch {
    return {};
  }
}

/** Let links to the chat lead to where it was left, if that was in the same workspace. */
export function leadBack(): void {
  const path = noted(CHAT);
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[data-last-chat]"))
    if (path?.startsWith(link.pathname)) link.href = path;
}
