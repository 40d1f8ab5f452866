/** Entry of the bud editor: counts and shows instructions, picks tools, and runs the test chat. */
import "./site";
import { startChecks } from "./buds/checks/panel";
import { startKnowledge } from "./buds/knowledge";
import { type Config, type LoadTools, type ServerRow, startPicker, type ToolRow } from "./buds/tools";
import { renderText } from "./markdown/render";
import t from "./texts/buds";

/** As the engine estimates before a provider has counted. */
const BYTES_A_TOKEN = 3.3;
const DRAFT_AFTER_MS = 800;
const TEST_TIMEOUT_MS = 30_000;

const find = <E extends Element>(selector: string): E | null => document.querySelector<E>(selector);
const form = find<HTMLFormElement>("#bud-form");

const tokensOf = (text: string): number => Math.ceil(new TextEncoder().encode(text).length / BYTES_A_TOKEN);

function slugOf(name: string): string {
  const plain = name.normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  return plain
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
}

function startInstructions(): void {
  const area = find<HTMLTextAreaElement>("[data-instructions]");
  const count = find<HTMLElement>("[data-token-count]");
  const button = find<HTMLButtonElement>("[data-preview]");
  const preview = find<HTMLElement>("[data-preview-of]");
  if (!area || !button || !preview) return;
  const tell = () => {
    if (count) count.textContent = t.tokens(tokensOf(area.value));
  };
  area.addEventListener("input", tell);
  tell();
  button.hidden = false;
  button.addEventListener("click", () => {
    const isShown = preview.hidden;
    preview.hidden = !isShown;
    area.hidden = isShown;
    button.setAttribute("aria-pressed", String(isShown));
    if (isShown) preview.innerHTML = renderText(area.value || t.empty);
  });
}

function startModel(): void {
  const select = find<HTMLSelectElement>("#id_model");
  const facts = find<HTMLElement>("#model-facts");
  const tell = () => {
    if (facts) facts.textContent = select?.selectedOptions[0]?.dataset.facts ?? "";
  };
  select?.addEventListener("change", tell);
  tell();
}

function startSlug(isNew: boolean): void {
  const name = find<HTMLInputElement>("#id_name");
  const slug = find<HTMLInputElement>("#id_slug");
  if (!isNew || !name || !slug || slug.value) return;
  let isOwn = false;
  slug.addEventListener("input", () => (isOwn = slug.value !== ""));
  const suggest = () => {
    if (!isOwn) slug.value = slugOf(name.value);
  };
  name.addEventListener("input", suggest);
  suggest(); // somebody may have typed before this was loaded
}

function startTools(editor: HTMLFormElement, touched: () => void): void {
  const root = find<HTMLElement>("[data-tool-picker]");
  const field = find<HTMLInputElement>("#id_mcp_config");
  const all = find<HTMLInputElement>("#id_takes_all_tools");
  const source = document.getElementById("bud-tools");
  if (!root || !field || !source) return;
  const data = JSON.parse(source.textContent ?? "{}") as {
    config: Config;
    servers: ServerRow[];
    tools_url: string;
  };
  const loadTools: LoadTools = async () => {
    const answer = await fetch(data.tools_url, { signal: AbortSignal.timeout(TEST_TIMEOUT_MS) });
    if (!answer.ok) throw new Error(answer.statusText);
    return ((await answer.json()) as { tools: Record<string, ToolRow[]> }).tools;
  };
  const config = editor.dataset.putBack === undefined ? data.config : (JSON.parse(field.value) as Config);
  field.value = JSON.stringify(config);
  const picker = startPicker(
    root,
    editor.querySelector<HTMLElement>("[data-tools-count]"),
    data.servers,
    config,
    () => all?.checked ?? false,
    (config) => {
      field.value = JSON.stringify(config);
      touched();
    },
    data.tools_url ? loadTools : null,
  );
  all?.addEventListener("change", picker.draw);
}

function startTest(editor: HTMLFormElement): { draftChanged: () => void } {
  const button = find<HTMLButtonElement>("[data-test-start]");
  const frame = find<HTMLIFrameElement>("[data-test-frame]");
  const help = find<HTMLElement>("[data-test-help]");
  const faults = find<HTMLElement>("[data-test-faults]");
  let isRunning = false;
  let timer = 0;
  let sending: Promise<void> = Promise.resolve();

  const show = (lines: string[]) => {
    if (!faults) return;
    faults.hidden = lines.length === 0;
    faults.replaceChildren(
      ...lines.map((line) => {
        const row = document.createElement("p");
        row.className = "field-error";
        row.textContent = line;
        return row;
      }),
    );
  };

  const send = async (isStart: boolean) => {
    const body = new FormData(editor);
    body.delete("base_version");
    if (editor.dataset.bud) body.set("bud", editor.dataset.bud);
    if (isStart) body.set("start", "1");
    try {
      const answer = await fetch(editor.dataset.testUrl ?? "", {
        method: "POST",
        body,
        signal: AbortSignal.timeout(TEST_TIMEOUT_MS),
      });
      const reply = (await answer.json()) as { url?: string | null; errors?: Record<string, string[]> };
      if (reply.errors) {
        const named = Object.entries(reply.errors).flatMap(([name, some]) =>
          some.map((one) => (name ? `${name}: ${one}` : one)),
        );
        return show([t.testFaults, ...named]);
      }
      if (!answer.ok) throw new Error(String(answer.status));
      show([]);
      if (isStart && reply.url && frame) {
        isRunning = true;
        frame.hidden = false;
        frame.src = reply.url;
        if (help) help.hidden = true;
        const label = button?.querySelector("span");
        if (label) label.textContent = t.startAgain;
      }
    } catch {
      show([t.testFailed]);
    }
  };

  button?.addEventListener("click", async () => {
    button.disabled = true;
    clearTimeout(timer);
    await sending;
    await send(true);
    button.disabled = false;
  });
  return {
    draftChanged: () => {
      if (!isRunning) return;
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        sending = sending.then(() => send(false));
      }, DRAFT_AFTER_MS);
    },
  };
}

if (form) {
  const editor = form;
  const unsaved = find<HTMLElement>("[data-unsaved]");
  const test = startTest(editor);
  const wasPutBack = editor.dataset.putBack !== undefined;
  let isTouched = wasPutBack || document.querySelector(".field .errorlist") !== null;
  if (unsaved && wasPutBack) unsaved.hidden = false;
  const touched = () => {
    isTouched = true;
    if (unsaved) unsaved.hidden = false;
    test.draftChanged();
  };
  editor.addEventListener("input", touched);
  editor.addEventListener("submit", () => (isTouched = false));
  addEventListener("beforeunload", (event) => {
    if (isTouched) event.preventDefault();
  });
  startInstructions();
  startModel();
  startSlug(!editor.dataset.bud);
  startTools(editor, touched);
  startKnowledge(editor);
  startChecks(editor);
}
