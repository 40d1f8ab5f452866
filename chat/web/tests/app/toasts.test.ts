/** What the page says in passing, and at a field. */
import { beforeEach, expect, it, vi } from "vitest";
import { ApiProblem } from "../../src/net/api";
import { openPage } from "../page";
import { conversation } from "../rows";

let app: typeof import("../app");
let notes: typeof import("../../src/app/toasts");

beforeEach(async () => {
  vi.useFakeTimers();
  openPage({ deleted_days: 30, urls: { home: "/w/demo/" } });
  vi.resetModules();
  app = await import("../app");
  notes = await import("../../src/app/toasts");
});

const texts = () => notes.toasts.value.map((one) => one.text);

it("REL-756: says the same once, and as long as when it was said last", () => {
  notes.toast("Copied", "ok");
  vi.advanceTimersByTime(3000);
  notes.toast("Sent", "ok");
  notes.toast("Copied", "ok");
  expect(texts()).toEqual(["Sent", "Copied"]);
  vi.advanceTimersByTime(4000);
  expect(texts()).toEqual(["Sent", "Copied"]);
  vi.advanceTimersByTime(600);
  expect(texts()).toEqual([]);
});

it("REL-756: keeps each way back", () => {
  const undo = { label: "Undo", run: () => undefined };
  notes.toast("Moved.", "ok", undo);
  notes.toast("Moved.", "ok", undo);
  expect(texts()).toEqual(["Moved.", "Moved."]);
});

it("REL-756: keeps each way back while another chat is deleted, and none to change a chat that is gone", async () => {
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) =>
    init?.method === "DELETE"
      ? new Response(null, { status: 204 })
      : Response.json(conversation({ id: "b" })),
  );
  await app.deleteConversation(conversation({ id: "a" }));
  await app.changeConversation("b", { is_archived: true });
  expect(texts()).toEqual(["Deleted.", "Archived."]);
  await app.deleteConversation(conversation({ id: "b" }));
  expect(notes.toasts.value.map((one) => one.action?.about)).toEqual([["a"], ["b"]]);
  expect(texts()).toEqual(["Deleted.", "Deleted."]);
  vi.unstubAllGlobals();
});

it("REL-755: leaves out the field's name in the request, and that field's alone", () => {
  const problem = (message: string) => new ApiProblem(400, "invalid", message, "name");
  expect(notes.messageAt("name", problem("name: It is taken."))).toBe("It is taken.");
  expect(notes.messageAt("name", problem("colour: There is none."))).toBe("colour: There is none.");
});

it("REL-953: tells whoever looks at a chat that it was deleted elsewhere, and brings it back", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (path: string, init?: RequestInit) => {
    asked.push(`${init?.method} ${path}`);
    return new Response("{}", { status: 404 });
  });
  app.place.value = "c1";
  await app.whileDeleting(["c1"], () => app.refreshConversation("c1"));
  expect([texts(), app.place.value, asked]).toEqual([[], "c1", []]);
  await app.refreshConversation("c2");
  expect(texts()).toEqual([]);
  await app.refreshConversation("c1");
  expect(texts()).toEqual(["This chat was deleted in another window or on another device."]);
  expect(app.place.value).toBeNull();
  notes.toasts.value[0]?.action?.run();
  expect(asked.at(-1)).toBe("POST /api/conversations/c1/restore/");
  vi.unstubAllGlobals();
});

it("REL-1828: does not call a chat deleted of a workspace that somebody was removed from", async () => {
  const errors = [{ code: "workspace_not_found", detail: "Workspace not found.", attr: null }];
  vi.stubGlobal("fetch", async () => Response.json({ errors }, { status: 404 }));
  app.place.value = "c1";
  await app.refreshConversation("c1");
  expect(texts()).toEqual([]);
  expect(app.place.value).toBe("c1");
  vi.unstubAllGlobals();
});

it("REL-1727: tells it, too, to whoever was offline when the chat was deleted", async () => {
  vi.stubGlobal("fetch", async () => new Response("{}", { status: 404 }));
  const { CommandError } = await import("../../src/net/socket");
  const { emptyConversation } = await import("../../src/store/conversation");
  vi.spyOn(app.socket, "isOpen", "get").mockReturnValue(true);
  vi.spyOn(app.socket, "ask").mockRejectedValue(new CommandError("not_found", "Not found."));
  app.place.value = "c1";
  app.openState.value = { ...emptyConversation("c1"), conversation: conversation({ id: "c1" }), seq: 1 };
  await app.openAgain();
  await vi.waitFor(() => expect(app.place.value).toBeNull());
  expect(texts()).toEqual(["This chat was deleted in another window or on another device."]);
  expect(notes.toasts.value[0]?.action?.label).toBe("Undo");
  vi.unstubAllGlobals();
});

it("REL-1349: no longer says that there is no connection once there is one", async () => {
  const { default: common } = await import("../../src/texts/common");
  notes.toast(common.notConnected, "bad");
  notes.toast(common.offline, "bad");
  notes.toast("Sent", "ok");
  notes.dropAbsence();
  expect(texts()).toEqual(["Sent"]);
});

it("REL-2159: says what became of something on the page before, until whoever arrives has looked around", () => {
  notes.tellMessages([
    { tone: "ok", text: "Welcome to W." },
    { tone: "bad", text: "That did not work." },
  ]);
  vi.advanceTimersByTime(8000);
  expect(texts()).toEqual(["Welcome to W.", "That did not work."]);
  expect(notes.toasts.value[1]?.tone).toBe("bad");
  vi.advanceTimersByTime(1500);
  expect(texts()).toEqual([]);
});
