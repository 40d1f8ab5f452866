import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Found } from "../../src/wire";
import { at, openPage, PLACE } from "../page";

let bell: typeof import("../../src/sidebar/bell");
let notices: typeof import("../../src/app/notices");
let waiting: typeof import("../../src/chat/waiting-dialog");
let chooser: typeof import("../../src/chat/composer/chooser");
let search: typeof import("../../src/sidebar/search");
/** What the server answers to each path; without an answer it is broken. */
let answers: Record<string, unknown>;
let pending: Promise<void> | null;

beforeAll(async () => {
  openPage({ urls: { notices: "/w/w/notices/" }, body: PLACE });
  vi.resetModules();
  bell = await import("../../src/sidebar/bell");
  notices = await import("../../src/app/notices");
  waiting = await import("../../src/chat/waiting-dialog");
  chooser = await import("../../src/chat/composer/chooser");
  search = await import("../../src/sidebar/search");
  notices.placeNotices("/w/w/notices/", "t");
});

const draw = (node: Parameters<typeof render>[0]): void => act(() => render(node, at())) as unknown as void;
const settle = (): Promise<void> => act(() => new Promise((resolve) => setTimeout(resolve)));

const openBell = (): void => {
  draw(<bell.Bell />);
  const opened = Object.assign(new Event("toggle"), { newState: "open" });
  act(() => void at().querySelector("[popover]")?.dispatchEvent(opened));
};

beforeEach(() => {
  answers = {};
  pending = null;
  vi.stubGlobal("fetch", async (url: string) => {
    await pending;
    const body = answers[url];
    return body === undefined
      ? new Response("", { status: 500 })
      : new Response(JSON.stringify(body), { status: 200 });
  });
});
afterEach(() => {
  draw(null);
  vi.unstubAllGlobals();
});

/** First it is asked for, then that fails, then there is nothing. */
async function phases(ask: () => unknown, path: string, empty: unknown): Promise<string[]> {
  const seen: string[] = [];
  let go = (): void => {};
  pending = new Promise((resolve) => {
    go = resolve;
  });
  void ask();
  await settle();
  seen.push(at().textContent ?? "");
  go();
  await settle();
  await settle();
  seen.push(at().textContent ?? "");
  answers[path] = empty;
  await act(async () => void (await ask()));
  await settle();
  seen.push(at().textContent ?? "");
  return seen;
}

describe("REL-873: a list is said to be empty only once it was read", () => {
  it("what waits for somebody", async () => {
    const { loadWaiting } = await import("../../src/waiting/state");
    draw(<waiting.WaitingDialog onClose={() => {}} />);
    const seen = await phases(loadWaiting, "/api/waiting/", []);
    expect(seen.map((text) => text.includes("Nothing waits"))).toEqual([false, false, true]);
    expect(seen[0]).toContain("Loading");
    expect(seen[1]).not.toContain("Loading");
  });

  it("notices", async () => {
    openBell();
    const seen = await phases(() => notices.loadNotices(), "/w/w/notices/?format=json", {
      unread: 0,
      notices: [],
    });
    expect(seen.map((text) => text.includes("Nothing yet"))).toEqual([false, false, true]);
    expect(seen[1]).toContain("can't read");
  });

  it("models", async () => {
    const { loadModels } = await import("../../src/chat/composer/choice");
    draw(<chooser.ChooserDialog kind="models" onClose={() => {}} />);
    const seen = await phases(loadModels, "/api/models/", []);
    expect(seen.map((text) => text.includes("No bud or model"))).toEqual([false, false, true]);
  });
});

it("REL-873: notices that could not be marked as read are said to be so", async () => {
  answers["/w/w/notices/?format=json"] = { unread: 1, notices: [] };
  openBell();
  await act(() => notices.loadNotices());
  await act(() => notices.loadNotices({ marksRead: true }));
  expect(at().textContent).toContain("can't read or change your notices");
});

const row = (kind: Partial<Found>): Found => ({
  found_in: "title",
  name: "",
  conversation_id: "c",
  title: "",
  avatar: "",
  is_archived: false,
  message_id: null,
  artifact_id: null,
  excerpt: [],
  at: "2026-11-01T10:00:00Z",
  ...kind,
});

it("REL-874: says that more than what is shown may be found", () => {
  const many = (count: number, found_in: Found["found_in"]) =>
    Array.from({ length: count }, () => row({ found_in }));
  expect(
    search.isCut([
      ...many(29, "message"),
      ...many(9, "title"),
      ...many(9, "file_name"),
      ...many(5, "call"),
      ...many(4, "file"),
    ]),
  ).toBe(false);
  expect(search.isCut(many(30, "message"))).toBe(true);
  expect(search.isCut(many(10, "file_name"))).toBe(true);
  expect(search.isCut(many(10, "title"))).toBe(true);
  expect(search.isCut([...many(5, "call"), ...many(5, "file")])).toBe(true);
});

it("REL-1166: says in which tool call or file words were found, marks them, and goes to the message", async () => {
  const excerpt = [
    { text: "a rare ", is_match: false },
    { text: "orchid", is_match: true },
  ];
  answers["/api/search/?q=orchid"] = [
    row({ found_in: "message", message_id: "m1", excerpt }),
    row({ found_in: "call", name: "mail.send", message_id: "m2", excerpt }),
    row({ found_in: "file", name: "bulbs.md", message_id: "m3", excerpt }),
    row({ found_in: "file_name", name: "orchid.md", artifact_id: "a", excerpt: excerpt.slice(1) }),
  ];
  const app = await import("../app");
  draw(<search.SearchDialog onClose={() => {}} />);
  const field = document.querySelector<HTMLInputElement>(".search-input");
  vi.useFakeTimers();
  await act(async () => {
    if (field) field.value = "orchid";
    field?.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await act(async () => void (await vi.advanceTimersByTimeAsync(500)));
  vi.useRealTimers();
  const lines = [...document.querySelectorAll("#search-results [role=option] .line-clamp-3")];
  expect(lines.map((line) => line.textContent)).toEqual([
    "a rare orchid",
    "In a tool call, mail.send: a rare orchid",
    "In a file, bulbs.md: a rare orchid",
    "File: orchid",
  ]);
  expect(lines.map((line) => line.querySelector("mark")?.textContent)).toEqual(Array(4).fill("orchid"));
  act(() => document.querySelector<HTMLElement>("#found-m2")?.click());
  expect(app.wanted.value).toBe("m2");
});

it("REL-873, REL-2784: nothing is said to be found only once the search has answered", async () => {
  answers["/api/search/?q=zzz"] = [];
  answers["/api/search/?q=orchid"] = [row({ title: "Orchids" })];
  draw(<search.SearchDialog onClose={() => {}} />);
  const field = document.querySelector<HTMLInputElement>(".search-input");
  const type = (words: string) =>
    act(async () => {
      if (field) field.value = words;
      field?.dispatchEvent(new Event("input", { bubbles: true }));
    });
  vi.useFakeTimers();
  await type("zzz");
  await act(async () => void (await vi.advanceTimersByTimeAsync(500)));
  expect(at().textContent).toContain("Nothing found for “zzz”");
  expect(at().textContent).toContain("only the beginning is searched");
  await type("orchid");
  expect(at().textContent).not.toContain("Nothing found");
  await act(async () => void (await vi.advanceTimersByTimeAsync(500)));
  expect(at().textContent).toContain("Orchids");
  vi.useRealTimers();
});

describe("REL-3270: what was found stays in its place until there is an answer to what is typed now", () => {
  const box = () => at().querySelector(".search-results");
  const options = () => [...at().querySelectorAll("#search-results [role=option]")];
  const titles = () => options().map((one) => one.querySelector(".truncate")?.textContent);
  const named = (...names: string[]) => names.map((title) => row({ title, conversation_id: title }));
  const type = (words: string) =>
    act(async () => {
      const field = document.querySelector<HTMLInputElement>(".search-input");
      if (field) field.value = words;
      field?.dispatchEvent(new Event("input", { bubbles: true }));
    });
  const wait = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));
  /** Elements that stand at another place than before. */
  const moved = (before: Element[]) =>
    options().filter((one, i) => before.includes(one) && before.indexOf(one) !== i);

  beforeEach(() => {
    answers["/api/conversations/"] = { results: [], next: null };
    draw(<search.SearchDialog onClose={() => {}} />);
    vi.useFakeTimers();
  });
  afterEach(() => void vi.useRealTimers());

  it("and is then replaced at once, together with offered filters; no element goes elsewhere", async () => {
    answers["/api/search/?q=i"] = named("Ice", "Ink", "Isle");
    answers["/api/search/?q=is"] = named("Isle", "Ice");
    answers["/api/search/?q=isle"] = named("Isle");
    await wait(0);
    expect(at().querySelector(".search-hints")).not.toBeNull();
    await type("i");
    expect(at().querySelector(".search-hints")).not.toBeNull();
    await wait(500);
    expect(at().querySelector(".search-hints")).toBeNull();
    expect(titles()).toEqual(["Ice", "Ink", "Isle"]);
    expect(box()?.getAttribute("aria-busy")).toBe("false");
    const first = options();
    await type("is");
    expect(options()).toEqual(first);
    expect(box()?.getAttribute("aria-busy")).toBe("true");
    await wait(500);
    expect(options().map((one) => one.textContent)).toEqual([
      expect.stringContaining("is:"),
      expect.stringContaining("Isle"),
      expect.stringContaining("Ice"),
    ]);
    expect(moved(first)).toEqual([]);
    expect(box()?.getAttribute("aria-busy")).toBe("false");
    const second = options();
    await type("isle");
    expect(options()).toEqual(second);
    await wait(500);
    expect(titles()).toEqual(["Isle"]);
    expect(moved(second)).toEqual([]);
  });

  it("rows at the beginning that are the same keep their elements", async () => {
    answers["/api/search/?q=a"] = named("Ash", "Aster", "Arum");
    answers["/api/search/?q=as"] = named("Ash", "Aster");
    await type("a");
    await wait(500);
    const first = options();
    await type("as");
    await wait(500);
    expect(options()).toEqual(first.slice(0, 2));
  });

  it("an answer that comes too late changes nothing", async () => {
    answers["/api/search/?q=late"] = named("Late");
    answers["/api/search/?q=now"] = named("Now");
    let go = (): void => {};
    pending = new Promise((resolve) => {
      go = resolve;
    });
    await type("late");
    await wait(500);
    pending = null;
    await type("now");
    await wait(500);
    expect(titles()).toEqual(["Now"]);
    go();
    await wait(500);
    expect(titles()).toEqual(["Now"]);
  });
});
