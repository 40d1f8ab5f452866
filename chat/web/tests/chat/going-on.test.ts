import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { Bud } from "../../src/wire";
import { openPage } from "../page";
import { conversation } from "../rows";

let app: typeof import("../app");
let commands: typeof import("../../src/store/commands");
let notes: typeof import("../../src/app/toasts");
let sending: typeof import("../../src/chat/sending");

const bud = { id: "b", name: "Clock", model: { name: "m", is_demo: false } } as Bud;
const BEGUN = "00000000-0000-4000-8000-00000000000a";
const OTHER = "00000000-0000-4000-8000-00000000000b";
let answer: () => void;

beforeAll(async () => {
  openPage();
  vi.resetModules();
  app = await import("../app");
  commands = await import("../../src/store/commands");
  notes = await import("../../src/app/toasts");
  sending = await import("../../src/chat/sending");
});

beforeEach(() => {
  app.go(app.homePath);
  notes.toasts.value = [];
  const made = new Promise<void>((resolve) => {
    answer = resolve;
  });
  vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
    if (init.method === "POST") await made;
    return new Response(JSON.stringify(conversation({ id: BEGUN })), { status: 201 });
  });
});
afterEach(() => {
  for (const one of app.outbox.read()) app.outbox.drop(one.client_id);
  vi.unstubAllGlobals();
});

const told = () => notes.toasts.value.map((one) => [one.text, one.action?.label]);

it("REL-1701: who has gone elsewhere while a chat began stays there, and the words are sent", async () => {
  const beginning = sending.startConversation(bud, "What time is it?");
  app.go(app.conversationPath(OTHER));
  answer();
  expect(await beginning).toBe("begun");
  expect(app.place.value).toBe(OTHER);
  expect(app.outbox.of(BEGUN).map((one) => one.text)).toEqual(["What time is it?"]);
  expect(told()).toEqual([["Your new chat has begun.", "Open"]]);
  notes.toasts.value[0]?.action?.run();
  expect(app.place.value).toBe(BEGUN);
});

it("REL-2216: what somebody has sent is shown while a slow server begins its chat, and not where it is quick", async () => {
  vi.useFakeTimers();
  const shown = () => sending.beginnings.value.map((one) => one.text);
  const beginning = sending.startConversation(bud, "What time is it?");
  await vi.advanceTimersByTimeAsync(100);
  expect(shown()).toEqual([]);
  await vi.advanceTimersByTimeAsync(400);
  expect(shown()).toEqual(["What time is it?"]);
  answer();
  await beginning;
  expect(shown()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(shown()).toEqual([]);
  vi.useRealTimers();
});

it("REL-1727: words that waited for the connection go on in the start page's field, if their chat is gone", async () => {
  const { CommandError } = await import("../../src/net/socket");
  const { draftOf, HOME, keepDraft } = await import("../../src/store/draft");
  const ask = vi.spyOn(app.socket, "ask").mockRejectedValue(new CommandError("not_found", "Not found."));
  vi.spyOn(app.socket, "isOpen", "get").mockReturnValue(true);
  keepDraft(HOME, "Begun.");
  app.go(app.conversationPath(OTHER));
  await sending.sendMessage("What time is it?");
  expect(draftOf(HOME)).toBe("Begun.\n\nWhat time is it?");
  expect(app.outbox.read()).toEqual([]);
  expect(told().map(([text]) => text)).toContain(
    "Not sent, because the chat was deleted. What you wrote is in the message field of a new chat.",
  );
  ask.mockRestore();
});

it("REL-1701: nor does a copy take along who has left what they copied", async () => {
  app.go(app.conversationPath(OTHER));
  const copying = commands.forkFrom("m");
  app.go(app.homePath);
  answer();
  await copying;
  expect(app.place.value).toBeNull();
  expect(told()).toEqual([["The copy of the conversation is ready.", "Open"]]);
});

it("REL-1701: the list of chats that lies over the page stays until one is chosen there", async () => {
  const beginning = sending.startConversation(bud, "What time is it?");
  app.isSidebarOpen.value = true;
  answer();
  expect(await beginning).toBe("open");
  expect(app.place.value).toBe(BEGUN);
  expect(app.isSidebarOpen.value).toBe(true);
  app.forget(BEGUN);
  expect(app.place.value).toBeNull();
  expect(app.isSidebarOpen.value).toBe(true);
  app.go(app.conversationPath(OTHER));
  expect(app.isSidebarOpen.value).toBe(false);
});

it("REL-1701: the message field of a chat that began takes the focus from nobody who is in the list", async () => {
  const { mayBeginTyping } = await import("../../src/app/focus");
  document.body.insertAdjacentHTML(
    "beforeend",
    '<nav id="sidebar"><input></nav><main><textarea></textarea></main>',
  );
  for (const [where, may] of [
    ["main textarea", true],
    ["#sidebar input", false],
  ] as const) {
    app.go(app.homePath);
    const beginning = sending.startConversation(bud, "What time is it?");
    document.querySelector<HTMLElement>(where)?.focus();
    answer();
    await beginning;
    expect(mayBeginTyping()).toBe(may);
  }
});
