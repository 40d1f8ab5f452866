/** Files on their way into a message: several at once, with progress, to be taken back or tried again. */
import { signal } from "@preact/signals";
import { boot } from "../../app/boot";
import { messageOf, toast } from "../../app/toasts";
import { sizeWord } from "../../artifacts/words";
import { ApiProblem, problemOf } from "../../net/api";
import { isFile, MOST_PICKED, type Picked, pickFile } from "../../store/attachments";
import { HOME } from "../../store/draft";
import { picked, takeAlong } from "../../store/picked";
import t from "../../texts/chat";
import common from "../../texts/common";
import type { Artifact } from "../../wire";

export interface Upload {
  key: number;
  file: File;
  name: string;
  /** From 0 to 1; null: it waits for its conversation. */
  progress: number | null;
  /** Why it did not arrive; empty while it may. */
  error: string;
}

/** By the draft that they belong to: a conversation's id, or "home". */
const uploads = signal<Readonly<Record<string, readonly Upload[]>>>({});
const requests = new Map<number, XMLHttpRequest>();
let counter = 0;

/** Whether files of the start page would be there after a reload (`home-files.ts`). */
export const areKept = signal(false);

// The browser asks before it leaves the page: a file that has not arrived is kept nowhere else.
addEventListener("beforeunload", (event) => {
  const all = Object.entries(uploads.value).filter(([draft]) => draft !== HOME || !areKept.value);
  if (all.some(([, list]) => list.some((one) => !one.error))) event.preventDefault();
});

/** In which order files that have arrived were chosen, by the ids of what came of them. */
const places = new Map<string, number>();

const placeOf = (one: Picked): number | undefined => (isFile(one) ? places.get(one.artifact_id) : undefined);

/** Where each part of a message stands among the uploads, by their keys: what is no upload, with the one before it. */
export function placesOf(list: readonly Picked[]): number[] {
  let last = 0;
  return list.map((one) => {
    last = placeOf(one) ?? last;
    return last;
  });
}

/** Files stand in the order in which they were chosen, whichever was quicker: people write of "the first picture". */
function sortChosen(draft: string): void {
  const list = picked.value[draft] ?? [];
  const files = list.filter((one) => placeOf(one) !== undefined);
  files.sort((a, b) => (placeOf(a) ?? 0) - (placeOf(b) ?? 0));
  const sorted = list.map((one) => (placeOf(one) === undefined ? one : (files.shift() ?? one)));
  if (sorted.some((one, at) => one !== list[at])) picked.value = { ...picked.value, [draft]: sorted };
}

export const uploadsOf = (draft: string): readonly Upload[] => uploads.value[draft] ?? [];

function put(draft: string, list: readonly Upload[]): void {
  uploads.value = { ...uploads.value, [draft]: list };
}

function change(draft: string, key: number, values: Partial<Upload>): void {
  put(
    draft,
    uploadsOf(draft).map((one) => (one.key === key ? { ...one, ...values } : one)),
  );
}

/**
 * Take files for the next message; those of a conversation go on their way at once.
 * True where all were taken and, in a conversation, have arrived.
 */
export async function takeFiles(
  draft: string,
  conversationId: string | undefined,
  files: Iterable<File>,
): Promise<boolean> {
  if (boot.is_kept) {
    toast(t.noFilesAway, "bad");
    return false;
  }
  const room = Math.max(0, MOST_PICKED - uploadsOf(draft).length - (picked.value[draft]?.length ?? 0));
  const chosen = [...files];
  if (chosen.length > room) toast(t.tooMany(MOST_PICKED, chosen.length - room), "bad");
  const arrivals: (boolean | Promise<boolean>)[] = [chosen.length <= room];
  for (const file of chosen.slice(0, room)) {
    counter += 1;
    const name = file.name || t.pastedFile;
    const error = file.size > boot.max_file_bytes ? t.tooLarge(sizeWord(boot.max_file_bytes)) : "";
    const one: Upload = { key: counter, file, name, progress: null, error };
    put(draft, [...uploadsOf(draft), one]);
    arrivals.push(error ? false : !conversationId || send(draft, conversationId, one));
  }
  return (await Promise.all(arrivals)).every(Boolean);
}

/** Whether it may arrive another time: one that is too large never does. */
export const mayTryAgain = (one: Upload): boolean => one.error !== "" && one.file.size <= boot.max_file_bytes;

export function dropUpload(draft: string, key: number): void {
  requests.get(key)?.abort();
  put(
    draft,
    uploadsOf(draft).filter((one) => one.key !== key),
  );
}

export function tryAgain(draft: string, conversationId: string | undefined, one: Upload): void {
  change(draft, one.key, { error: "", progress: null });
  if (conversationId) void send(draft, conversationId, one);
}

/** Send what was taken on the start page to the conversation that it became; true where all of it has arrived. */
export async function carryOver(from: string, to: string, waiting: readonly Upload[]): Promise<boolean> {
  put(from, []);
  put(to, [...uploadsOf(to), ...waiting]);
  const sent = await Promise.all(waiting.filter((one) => !one.error).map((one) => send(to, to, one)));
  return sent.every(Boolean) && sent.length === waiting.length;
}

async function send(draft: string, conversationId: string, one: Upload): Promise<boolean> {
  change(draft, one.key, { progress: 0 });
  try {
    const artifact = await post(conversationId, one, (progress) => change(draft, one.key, { progress }));
    dropUpload(draft, one.key);
    if (artifact) {
      places.set(artifact.id, one.key);
      takeAlong(conversationId, { ...pickFile(artifact), is_new: true });
      sortChosen(conversationId);
    }
    return artifact !== null;
  } catch (error) {
    change(draft, one.key, { error: messageOf(error), progress: null });
    return false;
  }
}

/** The file that came of it; null where it was taken back. `fetch` does not tell how far an upload has come. */
function post(
  conversationId: string,
  { key, file, name }: Upload,
  onProgress: (share: number) => void,
): Promise<Artifact | null> {
  const form = new FormData();
  form.set("file", file);
  form.set("name", name);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    requests.set(key, request);
    request.open("POST", `${boot.urls.api}conversations/${conversationId}/artifacts/`);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("X-Workspace", boot.workspace.slug);
    request.setRequestHeader("X-CSRFToken", boot.csrf_token);
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onerror = () => reject(new ApiProblem(0, "offline", common.offline));
    request.onabort = () => resolve(null);
    request.onload = async () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText) as Artifact);
      else reject(await problemOf(new Response(request.responseText, { status: request.status })));
    };
    request.onloadend = () => requests.delete(key);
    request.send(form);
  });
}
