import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../page";
import { conversation } from "../rows";

let app: typeof import("../app");
let notes: typeof import("../../src/app/toasts");
let deleted: typeof import("../../src/sidebar/deleted");
let moving: typeof import("../../src/sidebar/moving");
let folders: typeof import("../../src/sidebar/folders");
/** What the server answers to each path; what waits is answered by hand. */
let answers: Record<string, () => Promise<Response> | Response>;

beforeAll(async () => {
  openPage({ deleted_days: 30, body: PLACE });
  vi.resetModules();
  app = await import("../app");
  notes = await import("../../src/app/toasts");
  deleted = await import("../../src/sidebar/deleted");
  moving = await import("../../src/sidebar/moving");
  folders = await import("../../src/sidebar/folders");
});

const settle = (): Promise<void> => act(() => new Promise((resolve) => setTimeout(resolve)));
const page = (titles: string[], next: string | null = null): Response =>
  new Response(
    JSON.stringify({
      results: titles.map((title) => conversation({ id: title, title, deleted_at: "2026-11-20T10:00:00Z" })),
      next,
      previous: null,
    }),
  );
const button = (name: string): HTMLButtonElement =>
  [...at().querySelectorAll("button")].find((one) => one.textContent === name) as HTMLButtonElement;

beforeEach(() => {
  answers = {};
  vi.stubGlobal("fetch", async (url: string) => answers[url]?.() ?? new Response("", { status: 500 }));
});
afterEach(() => {
  act(() => render(null, at()));
  vi.unstubAllGlobals();
});

describe("recently deleted", () => {
  it("REL-870: are read page by page, and a page that fails leaves what is shown", async () => {
    answers["/api/conversations/deleted/"] = () => page(["first"], "https://x.example/api/next/");
    act(() => render(<deleted.DeletedDialog onClose={() => {}} />, at()));
    await settle();
    act(() => button("Show older chats").click());
    await settle();
    expect(at().querySelectorAll(".deleted-row")).toHaveLength(1);
    expect(at().querySelector("[role=alert]")?.textContent).toBeTruthy();
    answers["/api/next/"] = () => page(["second"]);
    act(() => button("Show older chats").click());
    await settle();
    const rows = [...at().querySelectorAll(".deleted-row .truncate")].map((row) => row.textContent);
    expect(rows).toEqual(["first", "second"]);
    expect(at().querySelector("[role=alert]")).toBeNull();
    expect(button("Show older chats")).toBeUndefined();
  });
});

describe("the list of chats", () => {
  it("REL-871: takes no page of another list that is no longer shown", async () => {
    answers["/api/conversations/?archived=false"] = () => page(["open"], "https://x.example/api/older/");
    answers["/api/conversations/?archived=true"] = () => page(["archived"]);
    await app.loadList();
    let answer = (_: Response): void => {};
    answers["/api/older/"] = () =>
      new Promise<Response>((resolve) => {
        answer = resolve;
      });
    const older = app.loadMore();
    app.setShowsArchived(true);
    await settle();
    answer(page(["open and older"]));
    await older;
    expect(app.list.value?.map((row) => row.title)).toEqual(["archived"]);
    expect(app.listNext.value).toBeNull();
  });
});

describe("chats chosen in the list", () => {
  it("REL-1240: are no longer chosen once they are not listed", async () => {
    answers["/api/conversations/?archived=false"] = () => page(["one", "two"]);
    answers["/api/conversations/?archived=true"] = () => page(["three"]);
    app.setShowsArchived(false);
    await settle();
    moving.selected.value = new Set(["one", "two"]);
    app.forget("two");
    expect([...(moving.selected.value ?? [])]).toEqual(["one"]);
    app.setShowsArchived(true);
    await settle();
    expect(moving.selected.value?.size).toBe(0);
    moving.stopSelecting();
  });

  it("REL-1241: are said to be moved only if they are, and the reason names no field", async () => {
    const refusal = { errors: [{ code: "invalid", detail: "You have no such folder.", attr: "folder_id" }] };
    answers["/api/conversations/one/"] = () => new Response(JSON.stringify(refusal), { status: 422 });
    notes.toasts.value = [];
    await moving.move([conversation({ id: "one" })], "f");
    expect(notes.toasts.value.map((one) => one.text)).toEqual(["You have no such folder."]);
  });
});

describe("folders", () => {
  const trips = { id: "f", name: "Trips", colour: "green" };
  const folderPage = (...rows: object[]) => new Response(JSON.stringify({ results: rows, next: null }));

  it("REL-1242: one that was deleted elsewhere is left, and its chats say nothing of it", async () => {
    answers["/api/folders/"] = () => folderPage(trips);
    answers["/api/conversations/?folder=f&archived=false"] = () => page([]);
    answers["/api/conversations/?archived=false"] = () => page(["one"]);
    await folders.loadFolders();
    app.setOpenFolder("f");
    await settle();
    expect(app.list.value).toEqual([]);
    answers["/api/folders/"] = () => folderPage();
    await folders.loadFolders();
    await settle();
    expect(app.openFolder.value).toBeNull();
    app.placeInList(conversation({ id: "one", folder_id: "f" }));
    await folders.loadFolders();
    await settle();
    expect(app.list.value?.map((row) => row.folder_id)).toEqual([null]);
  });
});

it("REL-1241: a title that could not be kept stays in its dialog", async () => {
  const { ConversationDialogs, task } = await import("../../src/sidebar/row");
  task.value = { kind: "rename", row: conversation({ id: "one" }) };
  act(() => render(<ConversationDialogs />, at()));
  const field = at().querySelector("#rename-title") as HTMLInputElement;
  field.value = "A careful title";
  const save = () => act(async () => field.form?.requestSubmit());
  await save();
  await vi.waitFor(() => expect(button("Save").disabled).toBe(false));
  expect((at().querySelector("#rename-title") as HTMLInputElement).value).toBe("A careful title");
  answers["/api/conversations/one/"] = () => Response.json(conversation({ id: "one", title: field.value }));
  await save();
  await vi.waitFor(() => expect(at().querySelector("#rename-title")).toBeNull());
});
