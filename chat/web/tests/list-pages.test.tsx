import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "./page";
import { conversation } from "./rows";

let app: typeof import("../src/app");
let deleted: typeof import("../src/sidebar/deleted");
/** What the server answers to each path; what waits is answered by hand. */
let answers: Record<string, () => Promise<Response> | Response>;

beforeAll(async () => {
  openPage({ deleted_days: 30, body: PLACE });
  vi.resetModules();
  app = await import("../src/app");
  deleted = await import("../src/sidebar/deleted");
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
