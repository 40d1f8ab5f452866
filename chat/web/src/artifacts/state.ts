/** Which file is open beside the conversation, and what one can do with files. */
import { computed, effect, signal } from "@preact/signals";
import { boot } from "../app/boot";
import { homePath, place } from "../app/place";
import { messageOf, toast } from "../app/toasts";
import { ApiProblem, answered } from "../net/api";
import { openState } from "../store/open-conversation";
import chat from "../texts/chat";
import common from "../texts/common";
import t from "../texts/files";
import { chooseFiles } from "../ui/choose-files";
import { refocus } from "../ui/refocus";
import type { Artifact, ArtifactVersion, KnowledgeFile, KnowledgeText } from "../wire";
import { sizeWord } from "./words";

interface Opened {
  conversationId: string;
  /** Null: the list. */
  artifactId: string | null;
  /** Null: whichever is the newest. */
  version: number | null;
  /** A file of the bud, instead of one of the conversation. */
  knowledge?: KnowledgePlace;
  /** It opened by itself: the focus stays where it is. */
  isQuiet?: boolean;
}

/** A place in a file that the bud knows. */
export interface KnowledgePlace {
  id: string;
  page: number | null;
  line: number | null;
}

/** There is room for the files beside the conversation. */
export const WIDE = "(min-width: 72rem)";

export const opened = signal<Opened | null>(null);
export const files = computed(() => openState.value?.artifacts ?? []);
export const isPanelOpen = computed(
  () => opened.value !== null && opened.value.conversationId === place.value,
);

let opener: HTMLElement | null = null;

export function openPanel(artifactId: string | null = null, version: number | null = null): void {
  const id = place.value;
  if (!id) return;
  if (!isPanelOpen.value && document.activeElement instanceof HTMLElement) opener = document.activeElement;
  opened.value = { conversationId: id, artifactId, version };
}

/** Open a file of the bud at a place. */
export function openKnowledge(knowledge: KnowledgePlace): void {
  openPanel();
  const id = place.value;
  if (id) opened.value = { conversationId: id, artifactId: null, version: null, knowledge };
}

/** A conversation and the files that it was seen with. */
let seen: { id: string; files: ReadonlySet<string> } | null = null;

// What an assistant has just written opens beside the chat, where there is room and nothing else is open.
effect(() => {
  const state = openState.value;
  if (!state || state.seq === null) return;
  const before = seen?.id === state.id ? seen.files : null;
  const fresh = state.artifacts.find(({ id, version }) => {
    return before && !before.has(id) && version.origin === "model" && version.number === 1;
  });
  seen = { id: state.id, files: new Set(state.artifacts.map((file) => file.id)) };
  if (!fresh || isPanelOpen.peek() || !matchMedia(WIDE).matches) return;
  opened.value = { conversationId: state.id, artifactId: fresh.id, version: null, isQuiet: true };
});

export function closePanel(): void {
  opened.value = null;
  const back = opener;
  opener = null;
  setTimeout(() => refocus(back));
}

// -- requests ----------------------------------------------------------------------------------------------------

async function request(method: string, path: string, body?: FormData | object): Promise<Response> {
  const headers = new Headers({ Accept: "application/json", "X-Workspace": boot.workspace.slug });
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (method !== "GET") headers.set("X-CSRFToken", boot.csrf_token);
  if (body instanceof FormData) init.body = body;
  else if (body) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(body);
  }
  return answered(`${boot.urls.api}${path}`, init);
}

const row = async (answer: Promise<Response>): Promise<Artifact> => (await (await answer).json()) as Artifact;

export const downloadPath = (id: string, version: number): string => `${homePath}artifacts/${id}/${version}/`;
export const previewPath = (id: string, version: number): string => `${downloadPath(id, version)}preview/`;

export async function versionsOf(id: string): Promise<ArtifactVersion[]> {
  return (await (await request("GET", `artifacts/${id}/versions/`)).json()) as ArtifactVersion[];
}

/** The text of a document, as models read it. */
export async function readingOf(id: string, version: number): Promise<string> {
  return (await request("GET", `artifacts/${id}/versions/${version}/text/`)).text();
}

/** The files that a bud knows. */
export async function knowledgeOf(bud: string): Promise<KnowledgeFile[]> {
  return (await (await request("GET", `buds/${bud}/knowledge/`)).json()) as KnowledgeFile[];
}

/** What stands at a place of such a file, as models read it. */
export async function readKnowledge({ id, page, line }: KnowledgePlace): Promise<KnowledgeText> {
  const where = page !== null ? `?page=${page}` : line !== null ? `?line=${line}` : "";
  return (await (await request("GET", `knowledge/${id}/text/${where}`)).json()) as KnowledgeText;
}

const texts = new Map<string, Promise<string>>();
const MOST_TEXTS = 12;
const LONG_TEXT = 200_000;

/** A text in the encoding that its header names. What `text()` gives is always read as UTF-8. */
async function decoded(response: Response): Promise<string> {
  const charset = /charset=([\w-]+)/.exec(response.headers.get("content-type") ?? "")?.[1];
  return new TextDecoder(charset ?? "utf-8").decode(await response.arrayBuffer());
}

/** The text of a version; versions never change, so one that was read is kept for a while. */
export function textOf(id: string, version: number): Promise<string> {
  const key = `${id}/${version}`;
  let text = texts.get(key);
  if (!text) {
    text = request("GET", `artifacts/${id}/versions/${version}/content/`).then(decoded);
    text.catch(() => texts.delete(key));
    texts.set(key, text);
    for (const oldest of texts.keys()) {
      if (texts.size <= MOST_TEXTS) break;
      texts.delete(oldest);
    }
  }
  return text;
}

/** Save a text as the next version. Raises ApiProblem; 409 where somebody has saved another one since. */
export function saveText(artifact: Artifact, text: string, base: number): Promise<Artifact> {
  if (text.length < LONG_TEXT) {
    return row(request("POST", `artifacts/${artifact.id}/versions/`, { content: text, base }));
  }
  // A file may be longer than the API's JSON bodies are.
  const form = new FormData();
  form.set("file", new File([text], artifact.name));
  form.set("base", String(base));
  return row(request("POST", `artifacts/${artifact.id}/versions/`, form));
}

/** Do something and say so if it does not work. */
async function tried<Result>(work: Promise<Result>): Promise<Result | null> {
  try {
    return await work;
  } catch (error) {
    toast(messageOf(error), "bad");
    return null;
  }
}

export async function restore(artifact: Artifact, version: number): Promise<void> {
  const done = await tried(row(request("POST", `artifacts/${artifact.id}/restore/`, { version })));
  if (!done) return;
  openPanel(artifact.id);
  toast(t.restored(version), "ok");
}

/** Raises ApiProblem, such as where another file has that name. */
export async function rename(artifact: Artifact, name: string): Promise<void> {
  await request("PATCH", `artifacts/${artifact.id}/`, { name });
}

export async function remove(artifact: Artifact): Promise<void> {
  if (!(await tried(request("DELETE", `artifacts/${artifact.id}/`)))) return;
  if (opened.value?.artifactId === artifact.id) openPanel();
  toast(t.deleted(artifact.name), "ok", {
    label: common.undo,
    run: () => void tried(row(request("POST", `artifacts/${artifact.id}/undelete/`))),
  });
}

/** Take away a file that no message has; where one has it by now, it stays. */
export async function removeUnsent(
  id: string,
  name: string,
  onBack: (artifact: Artifact) => void,
): Promise<void> {
  try {
    await request("DELETE", `artifacts/${id}/?unless_sent=true`);
  } catch (error) {
    const isSentOrGone = error instanceof ApiProblem && [404, 409].includes(error.status);
    if (!isSentOrGone) toast(messageOf(error), "bad");
    return;
  }
  if (opened.value?.artifactId === id) openPanel();
  toast(t.deleted(name), "ok", {
    label: common.undo,
    run: () =>
      void tried(row(request("POST", `artifacts/${id}/undelete/`))).then((back) => back && onBack(back)),
  });
}

// -- uploads -----------------------------------------------------------------------------------------------------

/** How many files are on their way. */
export const uploading = signal(0);

/** Add a file; null where it was not, and the person was told of which and why. */
async function add(conversationId: string, file: File, name: string): Promise<Artifact | null> {
  try {
    if (file.size > boot.max_file_bytes) throw new Error(chat.tooLarge(sizeWord(boot.max_file_bytes)));
    const form = new FormData();
    form.set("file", file);
    form.set("name", name);
    return await row(request("POST", `conversations/${conversationId}/artifacts/`, form));
  } catch (error) {
    toast(t.notAdded(name, messageOf(error)), "bad");
    return null;
  }
}

export async function upload(list: Iterable<File>): Promise<void> {
  const conversationId = place.value;
  const chosen = [...list];
  if (!conversationId || chosen.length === 0) return;
  uploading.value += chosen.length;
  for (const file of chosen) {
    const made = await add(conversationId, file, file.name || t.pasted);
    uploading.value -= 1;
    if (made && place.value === conversationId) openPanel(chosen.length === 1 ? made.id : null);
  }
}

/** Let the person choose files. */
export const pickFiles = (): void => chooseFiles((list) => void upload(list));
