import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { Bud } from "../../src/wire";
import { openPage } from "../page";
import { conversation } from "../rows";

let app: typeof import("../app");
let notes: typeof import("../../src/app/toasts");
let choice: typeof import("../../src/chat/composer/choice");
let sending: typeof import("../../src/chat/sending");
let temporary: typeof import("../../src/store/temporary");

const bud = { id: "b", name: "Clock", model: { name: "m", is_demo: false } } as Bud;
let asked: Record<string, unknown>[];
let keys: (string | null)[];
let hasGone: boolean;

beforeAll(async () => {
  openPage();
  vi.resetModules();
  app = await import("../app");
  notes = await import("../../src/app/toasts");
  choice = await import("../../src/chat/composer/choice");
  sending = await import("../../src/chat/sending");
  temporary = await import("../../src/store/temporary");
});

beforeEach(() => {
  asked = [];
  keys = [];
  hasGone = false;
  app.go(app.homePath);
  app.buds.value = [bud];
  app.openFolder.value = "f";
  notes.toasts.value = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    if (url !== "/api/conversations/" || init.method !== "POST") return new Response("", { status: 500 });
    const body = JSON.parse(String(init.body));
    asked.push(body);
    keys.push(new Headers(init.headers).get("Idempotency-Key"));
    const problem = { code: "invalid", detail: "You have no such folder.", attr: "folder_id" };
    return hasGone && body.folder_id
      ? new Response(JSON.stringify({ errors: [problem] }), { status: 400 })
      : new Response(JSON.stringify(conversation({ id: "c" })), { status: 201 });
  });
});
afterEach(() => {
  app.openFolder.value = null;
  app.buds.value = null;
  temporary.isNextTemporary.value = false;
  vi.unstubAllGlobals();
});

it("REL-1341: a chat goes into the folder that the sidebar shows, with whichever bud", () => {
  expect(choice.homeChoice(bud)).toEqual({ folder_id: "f" });
  expect(choice.homeChoice({ ...bud, id: "other" })).toEqual({ folder_id: "f" });
  temporary.isNextTemporary.value = true;
  expect(choice.homeChoice(bud)).toEqual({ is_temporary: true });
});

it("REL-1341: where the folder has gone, the chat begins in none", async () => {
  hasGone = true;
  expect(await sending.startConversation(bud, "", choice.homeChoice(bud))).toBe("open");
  expect(asked.map((one) => one.folder_id)).toEqual(["f", undefined]);
  // Another request has another key, and the same one each time it is tried.
  expect(keys[0]).toBeTruthy();
  expect(keys[1]).toBe(`${keys[0]}.unsorted`);
  expect(notes.toasts.value.map((one) => one.text)).toEqual([
    "The folder has been deleted, so this chat stands in none.",
  ]);
});
