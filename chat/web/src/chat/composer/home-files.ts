/** Files that are chosen for a chat which has not begun: kept in this browser until it begins, so that a reload loses none. */
import { effect, signal } from "@preact/signals";
import { createStore, del, get, set, type UseStore } from "idb-keyval";
import { boot } from "../../app/boot";
import { FILES } from "../../pages/forgetting";
import { HOME } from "../../store/draft";
import { isNextTemporary } from "../../store/temporary";
import { areKept, takeFiles, uploadsOf } from "./uploads";

const KEY = `${boot.user.id}.${boot.workspace.slug}`;
let made: UseStore | undefined;

/** Only where it is needed: some browsers have none in private windows. */
const store: UseStore = (mode, work) => {
  made ??= createStore(FILES, "files");
  return made(mode, (files) => {
    const { db } = files.transaction;
    // Somebody signs in or out, which deletes it. The next file makes it again.
    db.onversionchange = () => {
      db.close();
      made = undefined;
    };
    return work(files);
  });
};

/** One change after the other, so that the last one stays. */
let last: Promise<unknown> = Promise.resolve();
let changes = 0;

/** What the browser has kept; undefined while it is about to keep something else, or could not. */
const stored = signal<readonly File[] | undefined>(undefined);

function keep(files: readonly File[]): void {
  stored.value = undefined;
  changes += 1;
  const mine = changes;
  last = last
    .then(() => (files.length > 0 ? set(KEY, files, store) : del(KEY, store)))
    .then(
      () => {
        if (mine === changes) stored.value = files;
      },
      () => undefined, // no room, or none is given: then the browser asks before it leaves the page
    );
}

/** Take what was chosen before the page was closed, and keep what is chosen from now on. */
export async function followHomeFiles(): Promise<void> {
  let waiting: readonly File[];
  try {
    waiting = (await get<File[]>(KEY, store)) ?? [];
  } catch {
    return;
  }
  let kept = waiting;
  stored.value = kept;
  effect(() => {
    const chosen = uploadsOf(HOME).filter((one) => !one.error);
    const isTemporary = isNextTemporary.value;
    if (!isTemporary && waiting.length > 0) {
      const back = waiting;
      waiting = [];
      takeFiles(HOME, undefined, back); // which comes back here
      return;
    }
    // What is for a temporary chat is kept nowhere; what was kept before it waits for the next usual one.
    const files = isTemporary ? waiting : chosen.map((one) => one.file);
    if (files.length !== kept.length || files.some((file, at) => file !== kept[at])) {
      kept = files;
      keep(files);
    }
    areKept.value = !isTemporary && stored.value === kept;
  });
}
