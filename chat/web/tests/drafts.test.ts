/** Drafts of several devices: the last writer wins by time. */
import { beforeAll, expect, it, vi } from "vitest";
import { openPage } from "./page";

let drafts: typeof import("../src/chat/draft");

beforeAll(async () => {
  openPage();
  vi.resetModules();
  drafts = await import("../src/chat/draft");
});

it("REL-430: takes what was written later elsewhere, and that a draft was sent there", () => {
  const at = (name: string) => (name === "c1" ? Date.parse("2026-11-22T10:00:00Z") : 0);
  const draft = (conversation_id: string | null, text: string, time: string) => ({
    conversation_id,
    text,
    attachments: [],
    written_at: `2026-11-22T${time}Z`,
  });
  const told = [draft("c1", "older", "09:59:59"), draft(null, "start", "08:00:00")];
  expect(drafts.newer(told, at)).toEqual([
    { name: "home", text: "start", attachments: [], at: Date.parse("2026-11-22T08:00:00Z") },
  ]);
  expect(drafts.newer([draft("c1", "", "10:00:01")], at)).toHaveLength(1);
});

it("REL-952: what was written without a connection stays beside what was written later elsewhere", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const sent: string[] = [];
  let isAway = true;
  let theirs = {
    conversation_id: null,
    text: "from the desk",
    attachments: [],
    written_at: "2026-11-26T10:05:00Z",
  };
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    if (isAway) throw new TypeError("offline");
    if (init?.method !== "POST") return Response.json([theirs]);
    sent.push(JSON.parse(String(init.body)).text);
    return Response.json({});
  });
  drafts.keepDraft("home", "from the train");
  await vi.advanceTimersByTimeAsync(2_000);
  isAway = false;
  vi.setSystemTime(new Date("2026-11-26T10:10:00Z"));
  await drafts.loadDrafts();
  expect(drafts.draftOf("home")).toBe("from the desk\n\nfrom the train");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual(["from the desk\n\nfrom the train"]);

  // Both have it now: whoever writes last is right.
  theirs = { ...theirs, text: "shorter", written_at: "2026-11-26T10:20:00Z" };
  await drafts.loadDrafts();
  expect(drafts.draftOf("home")).toBe("shorter");
  expect(drafts.together("", "kept")).toBe("kept");
  expect(drafts.together("all of it", "of it")).toBe("all of it");
  vi.unstubAllGlobals();
});

it("SEC-480: what is written for a temporary chat stays in this browser, and no other tab takes it", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    if (init?.method !== "POST") return Response.json([]);
    sent.push(JSON.parse(String(init.body)).text);
    return Response.json({});
  });
  const { setNextTemporary } = await import("../src/chat/choice");
  drafts.keepDraft("home", "a usual beginning");
  await vi.advanceTimersByTimeAsync(2_000);
  setNextTemporary(true);
  expect(drafts.draftOf("home")).toBe("a usual beginning");
  drafts.keepDraft("home", "a secret end");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual(["a usual beginning", ""]);
  expect(localStorage.getItem("trellis.draft.u.w.home")).toBeNull();
  await drafts.loadDrafts();
  expect(sent).toHaveLength(2);
  setNextTemporary(false);
  expect(drafts.draftOf("home")).toBe("a secret end");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent.at(-1)).toBe("a secret end");
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("REL-1159: says where something is written and not sent, also of what another device wrote", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-27T10:00:00Z") });
  localStorage.clear();
  drafts.unsent.value = new Set();
  const theirs = [
    { conversation_id: "c1", text: "from the desk", attachments: [], written_at: "2026-11-27T09:00:00Z" },
    { conversation_id: "c2", text: "", attachments: [], written_at: "2026-11-27T09:00:00Z" },
  ];
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) =>
    Response.json(init?.method === "POST" ? {} : theirs),
  );
  await drafts.loadDrafts();
  expect([...drafts.unsent.value]).toEqual(["c1"]);
  drafts.keepDraft("c2", "mine");
  drafts.keepDraft("c1", " ");
  expect([...drafts.unsent.value]).toEqual(["c2"]);
  vi.unstubAllGlobals();
});

it("REL-1224: a draft keeps the files that were chosen, and takes those of another device", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-27T10:00:00Z") });
  localStorage.clear();
  drafts.unsent.value = new Set();
  const { picked, takeAlong, dropPicked } = await import("../src/app");
  const file = (id: string) =>
    ({ artifact_id: id, version: 1, title: `${id}.txt`, kind: "text", size: 3 }) as const;
  picked.value = {};
  const sent: string[][] = [];
  let theirs: unknown[] = [];
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    if (init?.method !== "POST") return Response.json(theirs);
    const { attachments } = JSON.parse(String(init.body)) as { attachments: { artifact_id: string }[] };
    sent.push(attachments.map((one) => one.artifact_id));
    return Response.json({});
  });
  drafts.followDrafts();
  await vi.advanceTimersByTimeAsync(0);
  takeAlong("c1", file("a"));
  expect([...drafts.unsent.value]).toEqual(["c1"]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual([["a"]]);

  const at = "2026-11-27T10:30:00Z";
  theirs = [{ conversation_id: "c1", text: "", attachments: [file("a"), file("b")], written_at: at }];
  await drafts.loadDrafts();
  expect(picked.value.c1?.map((one) => one.title)).toEqual(["a.txt", "b.txt"]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toHaveLength(1);

  vi.setSystemTime(new Date("2026-11-27T11:00:00Z"));
  for (const one of picked.value.c1 ?? []) dropPicked("c1", one);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent.at(-1)).toEqual([]);
  expect([...drafts.unsent.value]).toEqual([]);
  expect(localStorage.getItem("trellis.draft.u.w.c1.chosen")).toBeNull();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
