/** Files that are chosen for a chat which has not begun: kept in this browser until it begins, so that a reload loses none. */
import { effect } from "@preact/signals";
import { createStore, del, get, set, type UseStore } from "idb-keyval";
import { boot } from "../app";
import { FILES } from "../forgetting";
import { HOME } from "./draft";
import { isNextTemporary } from "./temporary";
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

function keep(files: readonly File[]): void {
  areKept.value = false;
  changes += 1;
  const mine = changes;
  last = last
    .then(() => (files.length > 0 ? set(KEY, files, store) : del(KEY, store)))
    .then(
      () => {
        if (mine === changes) areKept.value = true;
      },
      () => undefined, // no room, or none is given: then the browser asks before it leaves the page
    );
}

/** Take what was chosen before the page was closed, and keep what is chosen from now on. */
export async function followHomeFiles(): Promise<void> {
  try {
    const before = (await get<File[]>(KEY, store)) ?? [];
    if (before.length > 0 && !isNextTemporary.peek() && uploadsOf(HOME).length === 0)
      takeFiles(HOME, undefined, before);
  } catch {
    return;
  }
  let kept = uploadsOf(HOME).map((one) => one.file);
  areKept.value = true;
  effect(() => {
    // What is for a temporary chat is kept nowhere.
    const files = isNextTemporary.value
      ? []
      : uploadsOf(HOME)
          .filter((one) => !one.error)
          .map((one) => one.file);
    if (files.length === kept.length && files.every((file, at) => file === kept[at])) return;
    kept = files;
    keep(files);
  });
}
