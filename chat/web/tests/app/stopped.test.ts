import { afterEach, expect, it, vi } from "vitest";
import { emptyConversation, reduce } from "../../src/store/conversation";
import type { Waiting } from "../../src/wire";
import { openPage } from "../page";
import { CONVERSATION, conversation, inputRequest, snapshot, toolCall, turn } from "../rows";

const made: FakeSocket[] = [];
class FakeSocket {
  onclose: ((close: { code: number }) => void) | null = null;
  constructor() {
    made.push(this);
  }
}

afterEach(() => {
  vi.unstubAllGlobals();
});

/** REL-2545: by how the server turned them away. */
it.each([
  ["a session that ends stops nothing", 4401, 2, 1],
  ["nothing runs in an account that is off, and calls wait", 4410, 1, 1],
  ["nothing runs or waits for whoever has left", 4403, 0, 0],
])("%s", async (_, code, active, waits) => {
  openPage();
  vi.resetModules();
  vi.stubGlobal("WebSocket", FakeSocket);
  const app = await import("../app");
  const waiting = await import("../../src/waiting/state");
  (await import("../../src/waiting/watch")).watchWaiting();
  const rows = snapshot({
    turns: [turn({ id: "t1", status: "waiting_for_approval" }), turn({ id: "t2", status: "running" })],
    tool_calls: [
      toolCall({ id: "a", turn_id: "t1", status: "waiting_for_approval" }),
      toolCall({ id: "b", turn_id: "t2", status: "running" }),
    ],
    input_requests: [inputRequest()],
  });
  app.openState.value = reduce(emptyConversation(CONVERSATION), rows);
  app.list.value = [
    conversation({ id: "w", status: "waiting" }),
    conversation({ id: "r", status: "running" }),
  ];
  waiting.waitingItems.value = [{} as Waiting];
  app.socket.start();
  made.at(-1)?.onclose?.({ code });
  expect(app.runningTurns.value.length).toBe(active);
  expect(app.openState.value.toolCalls.filter((call) => call.status !== "cancelled").length).toBe(active);
  expect(app.list.value.filter((row) => row.status !== "idle").length).toBe(active);
  expect(app.waiting.value.length).toBe(waits);
  expect(app.openInputRequests.value.length).toBe(waits);
  expect(waiting.waitingCount.value).toBe(waits);
});
