/** What this browser keeps of people goes when they sign out, and when somebody else signs in. */

import t from "../texts/pages";
import { askFirst } from "./asking";

/** Drafts, messages and forms that were not sent, hosts that links may lead to, and models compared last; the person's id follows. */
const OF_A_PERSON = /^trellis\.(?:draft|unsent|typed|hosts|compared)\.([0-9a-f-]{36})(?:\.|$)/;
/** The browser's database of files that were chosen for a chat which has not begun. */
export const FILES = "trellis.files";
const SIGN_OUT = "/accounts/logout/";
/** Who was signed in last. */
const PERSON = "trellis.person";
const UNSENT = /^trellis\.unsent\./;

let isOver = false;

/** Where pages keep what is a person's. Once they have signed out, an answer that comes late brings nothing back. */
export const personal = {
  getItem: (key: string): string | null => localStorage.getItem(key),
  setItem: (key: string, value: string): void => {
    if (!isOver) localStorage.setItem(key, value);
  },
  removeItem: (key: string): void => localStorage.removeItem(key),
};

function keysOf(place: Storage): string[] {
  return Array.from({ length: place.length }, (_, at) => place.key(at) ?? "");
}

/** Forget everybody; with an id, everybody else. */
export function forgetPeople(place: Storage, except: string | null = null): void {
  for (const key of keysOf(place)) {
    const person = OF_A_PERSON.exec(key)?.[1];
    if (person && person !== except) place.removeItem(key);
  }
}

/** The browser does it by itself, also while the page goes away. */
function forgetFiles(): void {
  try {
    indexedDB.deleteDatabase(FILES);
  } catch {
    // Forbidden, so there is none.
  }
}

/** How many messages would be lost. */
export function countUnsent(place: Storage): number {
  let count = 0;
  for (const key of keysOf(place).filter((one) => UNSENT.test(one))) {
    try {
      const rows: unknown = JSON.parse(place.getItem(key) ?? "[]");
      count += Array.isArray(rows) ? rows.length : 0;
    } catch {
      // Nothing that could be sent.
    }
  }
  return count;
}

/** The browser's storage; null where it is forbidden. */
function storage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

/** Forget them in this tab too, which keeps the form that was sent last. */
function forgetInTab(except: string | null = null): void {
  try {
    forgetPeople(sessionStorage, except);
  } catch {
    // Forbidden, so nothing is kept.
  }
}

/** Somebody is signed in: what another person left goes, and pages that person left open hear of it. */
export function forgetOthers(person: string): void {
  const place = storage();
  if (!place) return;
  forgetPeople(place, person);
  forgetInTab(person);
  if (place.getItem(PERSON) === person) return;
  place.setItem(PERSON, person);
  forgetFiles();
}

/** Whether somebody else has signed in here since this person's page was opened. */
export function isAnothers(person: string): boolean {
  const last = storage()?.getItem(PERSON);
  return last != null && last !== person;
}

/**
 * Hear that somebody else has signed in, in another tab: the session of one of them has ended without a sign-out. What
 * this page still holds is kept nowhere from then on.
 */
export function hearOfAnother(person: string, left: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key !== PERSON || !isAnothers(person)) return;
    isOver = true;
    left();
  });
}

/** Hear of forms that sign out. `before` runs while everything is still there. */
export function forgetAtSignOut(before: () => void = () => {}): void {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const place = storage();
    if (!(form instanceof HTMLFormElement) || !place) return;
    if (new URL(form.action, location.href).pathname !== SIGN_OUT) return;
    const unsent = countUnsent(place);
    if (unsent > 0 && form.dataset.sure === undefined) {
      event.preventDefault();
      askFirst(t.unsentAtSignOut(unsent), t.signOutAnyway, () => {
        form.dataset.sure = "";
        // A menu takes its form with it when it closes.
        if (!form.isConnected) {
          form.hidden = true;
          document.body.append(form);
        }
        form.requestSubmit();
      });
      return;
    }
    before();
    isOver = true;
    forgetPeople(place);
    forgetInTab();
    forgetFiles();
  });
}
