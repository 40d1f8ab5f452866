/** The files that a bud knows, in its editor: adding several at once with progress, and removing. */
import { kindWord, sizeWord } from "../artifacts/words";
import { moment } from "../formats";
import { problemOf } from "../net/api";
import { askFirst } from "../pages/asking";
import t from "../texts/buds";
import common from "../texts/common";
import type { KnowledgeFile } from "../wire";

interface Data {
  files: KnowledgeFile[];
  slug: string;
  most_bytes: number;
}

/** A file on its way. */
interface Coming {
  file: File;
  status: string;
  isBad: boolean;
  request: XMLHttpRequest | null;
}

const API = "/api/";
const LOOK_EVERY_MS = 4_000;

export function startKnowledge(editor: HTMLFormElement): void {
  const list = document.querySelector<HTMLElement>("[data-knowledge-list]");
  const add = document.querySelector<HTMLButtonElement>("[data-knowledge-add]");
  const status = document.querySelector<HTMLElement>("[data-knowledge-status]");
  const source = document.getElementById("bud-knowledge");
  const bud = editor.dataset.bud;
  if (!list || !add || !source || !bud) return;
  const data = JSON.parse(source.textContent ?? "{}") as Data;
  const token = editor.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]")?.value ?? "";
  const headers = { Accept: "application/json", "X-Workspace": data.slug, "X-CSRFToken": token };
  let coming: Coming[] = [];

  const tell = (text: string) => {
    if (status) status.textContent = text;
  };

  const draw = () => {
    const rows = [
      ...data.files.map((file) => rowOf(file)),
      ...coming.map((one) => {
        const row = line(one.file.name, one.status, one.isBad);
        row.append(
          button(one.isBad ? t.dismiss : t.cancel, () => {
            one.request?.abort();
            coming = coming.filter((other) => other !== one);
            draw();
          }),
        );
        return row;
      }),
    ];
    if (rows.length === 0) rows.push(line("", t.knowledgeNone, false));
    list.replaceChildren(...rows);
  };

  const rowOf = (file: KnowledgeFile) => {
    const facts = t.knowledgeFacts(kindWord(file.kind), sizeWord(file.size), file.parts, file.lines);
    const row = line(file.name, file.is_cut ? `${facts} · ${t.knowledgeCut}` : facts, false);
    const name = row.querySelector(".knowledge-name");
    const link = document.createElement("a");
    link.href = `/w/${data.slug}/knowledge/${file.id}/`;
    link.textContent = file.name;
    link.title = t.download(file.name);
    link.className = "link-brand";
    name?.replaceChildren(link);
    if (file.meaning) {
      const meaning = document.createElement("div");
      meaning.dataset.meaning = file.id;
      tellMeaning(meaning, file);
      row.querySelector("div")?.append(meaning);
    }
    row.append(
      button(
        t.remove,
        () => askFirst(t.knowledgeSure(file.name), t.remove, () => remove(file)),
        t.knowledgeRemove(file.name),
      ),
    );
    return row;
  };

  const remove = async (file: KnowledgeFile) => {
    try {
      const answer = await fetch(`${API}knowledge/${file.id}/`, { method: "DELETE", headers });
      if (!answer.ok && answer.status !== 404) throw await problemOf(answer);
      data.files = data.files.filter((other) => other !== file);
      tell(t.knowledgeRemoved(file.name));
      draw();
      add.focus();
    } catch (error) {
      tell(error instanceof Error ? error.message : common.failed);
    }
  };

  // Only these lines are written anew: whoever has the focus on a row keeps it.
  const look = async () => {
    if (document.hidden || !data.files.some((file) => file.meaning?.state === "preparing")) return;
    const answer = await fetch(`${API}buds/${bud}/knowledge/`, { headers }).catch(() => null);
    if (!answer?.ok) return;
    const now = new Map(((await answer.json()) as KnowledgeFile[]).map((file) => [file.id, file]));
    for (const file of data.files) {
      const was = file.meaning?.state;
      file.meaning = now.get(file.id)?.meaning ?? file.meaning;
      const line = list.querySelector<HTMLElement>(`[data-meaning="${file.id}"]`);
      if (line) tellMeaning(line, file);
      if (was === "preparing" && file.meaning?.state !== was) tell(`${file.name}: ${meaningOf(file)}`);
    }
  };
  window.setInterval(() => void look(), LOOK_EVERY_MS);

  const send = (one: Coming) =>
    new Promise<void>((resolve) => {
      const request = new XMLHttpRequest();
      one.request = request;
      request.open("POST", `${API}buds/${bud}/knowledge/`);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      const say = (status: string, isBad = false) => {
        if (isBad || status === t.knowledgeReading) tell(`${one.file.name}: ${status}`);
        one.status = status;
        one.isBad = isBad;
        draw();
      };
      request.upload.onprogress = (event) => {
        if (!event.lengthComputable) return;
        const percent = Math.floor((event.loaded / event.total) * 100);
        say(percent < 100 ? t.knowledgeSending(percent) : t.knowledgeReading);
      };
      request.onerror = () => say(t.knowledgeFailed, true);
      request.onload = async () => {
        if (request.status === 201) {
          data.files = [...data.files, JSON.parse(request.responseText) as KnowledgeFile];
          coming = coming.filter((other) => other !== one);
          tell(t.knowledgeAdded(one.file.name));
          draw();
        } else {
          say(
            (await problemOf(new Response(request.responseText, { status: request.status }))).message,
            true,
          );
        }
      };
      request.onloadend = () => resolve();
      const body = new FormData();
      body.set("file", one.file);
      body.set("name", one.file.name);
      say(t.knowledgeSending(0));
      request.send(body);
    });

  add.hidden = false;
  add.addEventListener("click", () => {
    const field = document.createElement("input");
    field.type = "file";
    field.multiple = true;
    field.addEventListener("change", async () => {
      const chosen = [...(field.files ?? [])].map((file): Coming => {
        const isBad = file.size > data.most_bytes;
        return {
          file,
          isBad,
          status: isBad ? t.knowledgeTooLarge(sizeWord(data.most_bytes)) : "",
          request: null,
        };
      });
      coming = [...coming, ...chosen];
      draw();
      for (const one of chosen) {
        if (!one.isBad && coming.includes(one)) await send(one);
      }
    });
    field.click();
  });
  draw();
}

function meaningOf(file: KnowledgeFile): string {
  const meaning = file.meaning;
  if (!meaning) return "";
  if (meaning.state === "ready") return t.meaningReady;
  if (meaning.state === "words_only")
    return t.meaningFault(meaning.fault, meaning.again_at ? moment(meaning.again_at) : "");
  return meaning.passages ? t.meaningPreparing(meaning.done, meaning.passages) : t.meaningSoon;
}

function tellMeaning(line: HTMLElement, file: KnowledgeFile): void {
  line.className = file.meaning?.state === "words_only" ? "field-error" : "help";
  line.textContent = meaningOf(file);
}

function line(name: string, status: string, isBad: boolean): HTMLLIElement {
  const row = document.createElement("li");
  const words = document.createElement("div");
  const title = document.createElement("div");
  title.className = "knowledge-name";
  title.textContent = name;
  const about = document.createElement("div");
  about.className = isBad ? "field-error" : "help";
  about.textContent = status;
  words.append(...(name ? [title, about] : [about]));
  row.append(words);
  return row;
}

function button(label: string, onClick: () => void, name = label): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "btn btn-sm btn-quiet";
  made.textContent = label;
  made.ariaLabel = name;
  made.addEventListener("click", onClick);
  return made;
}
