/** Dialogs of a chat where the network is slow or away, or where people are quicker than it. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Bud, Share } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";
import { conversation } from "../../rows";

let composer: typeof import("../../../src/chat/composer/composer");
let draft: typeof import("../../../src/store/draft");
let focus: typeof import("../../../src/ui/refocus");
let modal: typeof import("../../../src/ui/modal");
let share: typeof import("../../../src/chat/share-dialog");
let compare: typeof import("../../../src/chat/composer/compare-dialog");
/** What the server answers, by method and path; without an answer it is broken. */
let answers: Record<string, (body: string) => Response | Promise<Response>>;

beforeAll(async () => {
  openPage({ body: PLACE });
  // None of these is known to the page of these tests.
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  Element.prototype.scrollIntoView = () => {};
  HTMLElement.prototype.hidePopover = () => {};
  vi.resetModules();
  composer = await import("../../../src/chat/composer/composer");
  draft = await import("../../../src/store/draft");
  focus = await import("../../../src/ui/refocus");
  modal = await import("../../../src/ui/modal");
  share = await import("../../../src/chat/share-dialog");
  compare = await import("../../../src/chat/composer/compare-dialog");
});
beforeEach(() => {
  answers = {};
  vi.stubGlobal("fetch", async (url: string, { method, body }: RequestInit) => {
    const path = url.replace(/\?$/, "");
    return answers[`${method} ${path}`]?.(String(body ?? "")) ?? new Response("", { status: 500 });
  });
});
afterEach(() => {
  draw(null);
  vi.unstubAllGlobals();
  localStorage.clear();
});

const draw = (node: Parameters<typeof render>[0]): void => act(() => render(node, at())) as unknown as void;
const settle = (): Promise<void> => act(() => new Promise((resolve) => setTimeout(resolve)));
const json = (body: unknown): Response => new Response(JSON.stringify(body));
const named = (name: string): HTMLButtonElement =>
  [...at().querySelectorAll("button")].find(
    (one) => one.textContent?.trim() === name || one.getAttribute("aria-label") === name,
  ) as HTMLButtonElement;
const shows = (text: string) =>
  vi.waitFor(async () => void (await settle(), expect(at().textContent).toContain(text)));

it("REL-1250: choosing to use a prompt keeps what is written already", () => {
  draft.keepDraft("x", "My question");
  const parts = { draftKey: "x", label: "Message", placeholder: "", onSend: async () => {} };
  draw(<composer.Composer {...parts} />);
  const menu = at().querySelector(".composer-bar [popover]");
  act(() => void menu?.dispatchEvent(Object.assign(new Event("toggle"), { newState: "open" })));
  act(() => named("Use a prompt").click());
  expect(at().querySelector("textarea")?.value).toBe("/ My question");
  expect(at().querySelector("[role=listbox]")).not.toBeNull();
});

describe("a shared chat", () => {
  const row = conversation({ id: "c", is_shared: true });
  const shared = {
    link: "https://x.example/s/1",
    audience: "workspace",
    people: [],
    shared_at: row.created_at,
  };
  const url = "/api/conversations/c/share/";

  it("REL-1251: that could not be stopped says why, and one that was stopped elsewhere is stopped", async () => {
    answers[`GET ${url}`] = () => json({ ...shared, is_open: true, is_current: true } as unknown as Share);
    const onClose = vi.fn();
    draw(<share.ShareDialog about={{ row }} onClose={onClose} />);
    await shows("Stop sharing");
    act(() => named("Stop sharing").click());
    await act(async () => named("Stop sharing").click());
    await shows("The server");
    expect(at().querySelector(".field-error")?.textContent).toBeTruthy();
    expect(onClose).not.toHaveBeenCalled();
    answers[`DELETE ${url}`] = () => new Response("{}", { status: 404 });
    await act(async () => named("Stop sharing").click());
    await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
  });

  it("SEC-601: that was unshared elsewhere is not shared again by a dialog that is still open", async () => {
    const app = await import("../../app");
    answers[`GET ${url}`] = () => json({ ...shared, is_open: true, is_current: true } as unknown as Share);
    app.list.value = [row];
    draw(<share.ShareDialog about={{ row }} onClose={() => {}} />);
    await shows("Stop sharing");
    expect(named("Update")).toBeDefined();
    act(() => app.placeInList({ ...row, is_shared: false }));
    await shows("Readers see your messages");
    expect(named("Update")).toBeUndefined();
    expect(named("Stop sharing")).toBeUndefined();
  });
});

it("REL-1252: models that could not be read are asked for again", async () => {
  draw(<compare.CompareDialog about={{ draft: "x" }} onClose={() => {}} />);
  await shows("Try again");
  answers["GET /api/models/"] = () => json([]);
  act(() => named("Try again").click());
  await vi.waitFor(async () => void (await settle(), expect(named("Try again")).toBeUndefined()));
});

it("REL-1253: after a decision in a dialog the focus stays in it", () => {
  const dialog = document.createElement("dialog");
  dialog.open = true;
  dialog.innerHTML = "<button>Close</button><button>Allow once</button>";
  document.body.append(dialog);
  const leave = modal.openModal(dialog);
  focus.toComposer();
  expect(document.activeElement?.textContent).toBe("Close");
  leave();
  dialog.remove();
});

it("REL-1258: a chat that could not be shown for a moment is shown once it can be", async () => {
  const app = await import("../../app");
  const { CommandError } = await import("../../../src/net/socket");
  const { ConversationView } = await import("../../../src/chat/conversation");
  const { emptyConversation } = await import("../../../src/store/conversation");
  const id = conversation().id;
  app.place.value = id;
  app.openState.value = emptyConversation(id);
  vi.spyOn(app.socket, "isOpen", "get").mockReturnValue(true);
  const ask = vi.spyOn(app.socket, "ask").mockRejectedValue(new CommandError("unavailable", "Not now."));
  await app.openAgain();
  draw(<ConversationView id={id} />);
  expect(at().textContent).toContain("Not now.");
  ask.mockResolvedValue({ type: "accepted", ref: "r" });
  await act(async () => named("Try again").click());
  await vi.waitFor(() => expect(app.openProblem.value).toBeNull());
  ask.mockRejectedValue(new CommandError("not_found", "Not found."));
  await act(() => app.openAgain());
  expect(named("Try again")).toBeUndefined();
  ask.mockResolvedValue({ type: "accepted", ref: "r" });
  answers[`GET /api/conversations/${id}/`] = () => json(conversation());
  await act(() => app.refreshConversation(id));
  await vi.waitFor(() => expect(app.openProblem.value).toBeNull());
  vi.restoreAllMocks();
});

it("REL-1357: a message that was not taken asks whom it asked before", async () => {
  const app = await import("../../app");
  const asked = await import("../../../src/chat/composer/asked");
  const { mention } = await import("../../../src/chat/composer/mentions");
  const { compareNext } = await import("../../../src/chat/composer/comparing");
  const clock = { id: "b", name: "Clock", model: {} } as Bud;
  const other = { id: "o", name: "Notes", model: {} } as Bud;
  app.buds.value = [other, clock];
  const models = [
    { provider_id: "p", name: "a" },
    { provider_id: "p", name: "b" },
  ];
  app.place.value = null;
  let take = (_: boolean): void => {};
  const seen: unknown[] = [];
  const parts = {
    draftKey: "x",
    label: "Message",
    placeholder: "",
    onSend: (_: string, __: unknown, whom: unknown) => {
      seen.push(whom);
      return new Promise<boolean>((resolve) => {
        take = resolve;
      });
    },
  };
  for (const choose of [() => mention("x", clock), () => compareNext("x", models)]) {
    draft.keepDraft("x", "What time is it?");
    choose();
    draw(<composer.Composer {...parts} />);
    act(() => (at().querySelector("form") as HTMLFormElement).requestSubmit());
    expect(asked.askedBy("x")).toEqual({ bud_id: null, compare: [] });
    await act(async () => take(false));
    await vi.waitFor(() => expect(asked.askedBy("x")).toEqual(seen.at(-1)));
    expect(draft.draftOf("x")).toBe("What time is it?");
    asked.dropAsked("x");
    draft.keepDraft("x", "");
    draw(null);
  }
  expect(seen).toEqual([
    { bud_id: "b", compare: [] },
    { bud_id: null, compare: models },
  ]);
  app.buds.value = null;
});

it("REL-1359: a message that was not sent can be changed, with its file and whom it asks", async () => {
  const app = await import("../../app");
  const along = await import("../../../src/store/picked");
  const asked = await import("../../../src/chat/composer/asked");
  const { OutgoingMessage } = await import("../../../src/chat/messages/outgoing");
  const clock = { id: "b", name: "Clock", model: {} } as Bud;
  app.buds.value = [{ id: "o", name: "Notes", model: {} } as Bud, clock];
  app.place.value = null;
  draft.keepDraft("home", "Typed since");
  const file = { artifact_id: "f", version: 1, title: "a.txt", kind: "text", size: 3 } as const;
  const outgoing = {
    client_id: "m",
    text: "Too early",
    attachments: [file],
    bud_id: "b",
    compare: [],
    sent_at: "2026-11-21T08:00:00Z",
    error: "This bud is archived.",
  };
  draw(<OutgoingMessage outgoing={outgoing} />);
  act(() => named("Edit").click());
  expect(draft.draftOf("home")).toBe("Too early\n\nTyped since");
  expect(along.picked.value.home).toEqual([file]);
  expect(asked.askedBy("home").bud_id).toBe("b");
  asked.dropAsked("home");
  app.buds.value = null;
  along.picked.value = {};
});

it("REL-2886: an open chat says where one writes that its bud was archived, until it is restored", async () => {
  const app = await import("../../app");
  const { emptyConversation } = await import("../../../src/store/conversation");
  const row = conversation();
  app.place.value = row.id;
  app.openState.value = { ...emptyConversation(row.id), conversation: row };
  const become = (results: Partial<Bud>[]): Promise<void> => {
    answers["GET /api/buds/"] = () => json({ results, next: null });
    return act(() => app.loadBuds());
  };
  const said = () => at().querySelector("[role=status]")?.textContent;
  draw(<composer.Composer draftKey="x" label="Message" placeholder="" onSend={async () => {}} />);
  await become([{ ...row.bud, is_archived: false, model: {} as Bud["model"] }]);
  expect(said()).toBeUndefined();
  await become([{ ...row.bud, is_archived: true }]);
  expect(said()).toContain("“Clerk” is archived. It still answers in this chat");
  await become([]);
  expect(said()).toContain("“Clerk” is no longer offered to you.");
  await become([{ ...row.bud, is_archived: false, model: {} as Bud["model"] }]);
  expect(said()).toBeUndefined();
  app.buds.value = null;
});
