import { afterEach, beforeAll, expect, it, vi } from "vitest";
import type { Waiting } from "../../src/wire";
import { openPage } from "../page";
import { toolCall } from "../rows";

let app: typeof import("../app");
let state: typeof import("../../src/waiting/state");
let notify: typeof import("../../src/waiting/notify");

const shown: { words: string; onclick?: () => void; close: () => void }[] = [];

beforeAll(async () => {
  openPage({});
  class Shown {
    static permission = "granted";
    onclick?: () => void;
    close = () => {};
    constructor(readonly words: string) {
      shown.push(this);
    }
  }
  vi.stubGlobal("Notification", Shown);
  app = await import("../app");
  state = await import("../../src/waiting/state");
  notify = await import("../../src/waiting/notify");
});

afterEach(() => {
  state.waitingItems.value = null;
  app.wanted.value = null;
  notify.isNotifying.value = false;
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const asked: Waiting = {
  conversation: { id: "c1", title: "Orders", avatar: "" },
  message_id: "m1",
  tool_call: null,
  input_request: null,
  access_request: null,
  asked_by: null,
};

it("REL-1155: a notification leads to the message that waits", async () => {
  notify.isNotifying.value = true;
  state.waitingItems.value = [];
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json([{ ...asked, tool_call: toolCall({}) }]));
  const pushed = vi.spyOn(history, "pushState");
  await state.loadWaiting();
  shown[0]?.onclick?.();
  expect(pushed.mock.lastCall?.[2]).toBe(app.conversationPath("c1"));
  expect(app.wanted.value).toBe("m1");
});

it("REL-1155: the icon of the installed app has the number of what waits", () => {
  const setAppBadge = vi.fn(() => Promise.reject(new Error("not installed")));
  Object.assign(navigator, { setAppBadge });
  state.showCount();
  state.waitingItems.value = [asked, asked];
  state.waitingItems.value = [];
  expect(setAppBadge.mock.calls).toEqual([[0], [2], [0]]);
});
