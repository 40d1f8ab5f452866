/** Drafts of several devices: none replaces what it has not seen. */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { merged, together } from "../../src/store/merging";
import type { Bud, Draft } from "../../src/wire";
import { openPage } from "../page";
import { conversation } from "../rows";

let drafts: typeof import("../../src/store/draft");

beforeAll(async () => {
  openPage({ max_file_bytes: 1000, max_message_characters: 1000 });
  vi.resetModules();
  drafts = await import("../../src/store/draft");
});

/** What the server keeps of each place, and gives back. */
interface Kept {
  conversation_id: string | null;
  text: string;
  attachments: unknown[];
  written_at: string;
  version: number;
}

/** A server of drafts: one that was not seen stays. */
function server(kept: Kept[] = []) {
  const sent: string[] = [];
  const at = { rows: kept, sent, isAway: false };
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    if (at.isAway) throw new TypeError("offline");
    if (init?.method !== "POST") return Response.json(at.rows);
    const said = JSON.parse(String(init.body)) as Kept & { base_version: number };
    sent.push(said.text);
    const { base_version, ...more } = said;
    const before = at.rows.find((one) => one.conversation_id === said.conversation_id);
    const isSame = before?.text === said.text && String(before.attachments) === String(said.attachments);
    if (before && (isSame || before.version !== base_version)) return Response.json(before);
    const row = { ...more, version: (before?.version ?? 0) + 1 };
    at.rows = [...at.rows.filter((one) => one !== before), row];
    return Response.json(row);
  });
  return at;
}

const draft = (conversation_id: string | null, text: string, version: number): Kept => ({
  conversation_id,
  text,
  attachments: [],
  written_at: "2026-11-22T10:00:00Z",
  version,
});

it("REL-430: takes what was written elsewhere and not seen here, and that a draft was sent there", () => {
  const told = [draft("c1", "seen", 3), draft(null, "start", 1), draft("c2", "", 8)];
  const seen = (name: string) => (name === "c1" ? 3 : name === "c2" ? 7 : 0);
  expect(drafts.unseen(told as Draft[], seen).map((one) => one.text)).toEqual(["start", ""]);
});

it("REL-1346: two devices that type in one chat at once lose no word, whatever their clocks say", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const notes = await import("../../src/app/toasts");
  notes.toasts.value = [];
  const at = server();
  drafts.keepDraft("c1", "Dear Ada");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(at.rows[0]).toMatchObject({ text: "Dear Ada", version: 1 });
  // The other device was quicker by a moment, and its clock is a day ahead.
  at.rows = [{ ...draft("c1", "Dear Ada, thank you", 2), written_at: "2026-11-27T10:00:00Z" }];
  drafts.keepDraft("c1", "My dear Ada");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(drafts.draftOf("c1")).toBe("My Dear Ada, thank you".replace("Dear", "dear"));
  expect(notes.toasts.value).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(at.rows[0]).toMatchObject({ text: drafts.draftOf("c1"), version: 3 });
  // It has seen that one, and goes on from it.
  drafts.keepDraft("c1", "My dear Ada");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(at.rows[0]).toMatchObject({ text: "My dear Ada", version: 4 });
  vi.unstubAllGlobals();
});

it("REL-3194: says once that a text is too long for the server, and keeps it there again once it is shorter", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const notes = await import("../../src/app/toasts");
  notes.toasts.value = [];
  const at = server();
  for (const text of ["a".repeat(1_001), "a".repeat(1_002)]) {
    drafts.keepDraft("c1", text);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(drafts.draftOf("c1")).toBe(text);
  }
  expect(at.sent).toEqual([]);
  expect(notes.toasts.value.map(({ text }) => text)).toEqual([expect.stringContaining("1,000 characters")]);
  drafts.keepDraft("c1", "😀".repeat(1_000));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(at.sent).toHaveLength(1);
  drafts.keepDraft("c1", "a".repeat(1_001));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(notes.toasts.value).toHaveLength(1); // said anew: the first one has been there long enough
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("REL-1346: what is typed while an earlier draft is on its way is no other device's", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const at = server();
  const answer = globalThis.fetch;
  let wait: () => void = () => {};
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    const answered = await answer(url, init);
    await new Promise<void>((resolve) => {
      wait = resolve;
    });
    return answered;
  });
  drafts.keepDraft("c1", "Helo");
  await vi.advanceTimersByTimeAsync(2_000);
  drafts.keepDraft("c1", "Hello");
  await vi.advanceTimersByTimeAsync(2_000);
  await vi.waitFor(() => {
    wait();
    expect(at.rows[0]).toMatchObject({ text: "Hello", version: 2 });
  });
  expect(drafts.draftOf("c1")).toBe("Hello");
  vi.unstubAllGlobals();
});

describe("REL-1346: two texts that grew out of one", () => {
  for (const [before, theirs, ours, both] of [
    ["", "milk", "milk and bread", "milk and bread"],
    ["", "milk", "bread", "milk\n\nbread"],
    ["a b c", "A b c", "a b C", "A b C"],
    ["a b c", "a b C", "A b c", "A b C"],
    ["Dear Ada", "Dear Ada, thanks", "My dear Ada", "My dear Ada, thanks"],
    ["a b", "a b", "a", "a"],
    ["a b", "", "a b c", "a b c"],
    ["a b", "", "a b", ""],
    ["a b", "x", "y", "x\n\ny"],
    ["plan: ", "plan: milk", "plan: bread", "plan: milk\n\nplan: bread"],
    ["😀 and 😀", "😃 and 😀", "😀 and 😄", "😃 and 😄"],
  ] as const) {
    it(`${before} | ${theirs} | ${ours}`, () => expect(merged(before, theirs, ours)).toBe(both));
  }
});

it("REL-952: what was written without a connection stays beside what was written later elsewhere", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const at = server([draft(null, "from the desk", 3)]);
  at.isAway = true;
  drafts.keepDraft("home", "from the train");
  await vi.advanceTimersByTimeAsync(2_000);
  at.isAway = false;
  await drafts.loadDrafts();
  expect(drafts.draftOf("home")).toBe("from the desk\n\nfrom the train");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(at.sent).toEqual(["from the desk\n\nfrom the train"]);

  // Both have it now: whoever writes next is right.
  at.rows = [draft(null, "shorter", 5)];
  await drafts.loadDrafts();
  expect(drafts.draftOf("home")).toBe("shorter");
  expect(together("", "kept")).toBe("kept");
  expect(together("all of it", "of it")).toBe("all of it");
  vi.unstubAllGlobals();
});

it("SEC-480: what is written for a temporary chat stays in this browser, and no other tab takes it", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const { sent } = server();
  drafts.keepDraft("home", "a usual beginning");
  await vi.advanceTimersByTimeAsync(2_000);
  drafts.setNextTemporary(true);
  expect(drafts.draftOf("home")).toBe("a usual beginning");
  drafts.keepDraft("home", "a secret end");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual(["a usual beginning", ""]);
  expect(localStorage.getItem("trellis.draft.u.w.home")).toBeNull();
  await drafts.loadDrafts();
  expect(sent).toHaveLength(2);
  drafts.setNextTemporary(false);
  expect(drafts.draftOf("home")).toBe("a secret end");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent.at(-1)).toBe("a secret end");
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("SEC-881: what begins a temporary chat is no draft on the server while its files arrive", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-26T10:00:00Z") });
  localStorage.clear();
  const posted: string[] = [];
  vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
    if (init?.method === "POST") posted.push(`${address} ${init.body}`);
    return Response.json(conversation({ id: "t1", is_temporary: true }));
  });
  vi.stubGlobal(
    "XMLHttpRequest",
    class {
      upload = {};
      open() {}
      setRequestHeader() {}
      abort() {}
      send() {}
    },
  );
  const uploads = await import("../../src/chat/composer/uploads");
  const { startConversation } = await import("../../src/chat/sending");
  uploads.takeFiles("home", undefined, [new File(["x"], "plan.txt")]);
  await startConversation({ id: "b1" } as Bud, "a secret", { is_temporary: true });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(drafts.draftOf("t1")).toBe("a secret");
  expect(posted.filter((one) => one.includes("a secret"))).toEqual([]);
  for (const one of uploads.uploadsOf("t1")) uploads.dropUpload("t1", one.key);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("REL-1159: says where something is written and not sent, also of what another device wrote", async () => {
  vi.useFakeTimers({ now: new Date("2026-11-27T10:00:00Z") });
  localStorage.clear();
  drafts.unsent.value = new Set();
  server([draft("c1", "from the desk", 1), draft("c2", "", 1)]);
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
  const { picked, takeAlong, dropPicked } = await import("../../src/store/picked");
  const file = (id: string) =>
    ({ artifact_id: id, version: 1, title: `${id}.txt`, kind: "text", size: 3 }) as const;
  picked.value = {};
  const sent: string[][] = [];
  let theirs: unknown[] = [];
  let version = 0;
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    if (init?.method !== "POST") return Response.json(theirs);
    const { attachments } = JSON.parse(String(init.body)) as { attachments: { artifact_id: string }[] };
    sent.push(attachments.map((one) => one.artifact_id));
    version += 1;
    return Response.json({ ...JSON.parse(String(init.body)), version });
  });
  drafts.followDrafts();
  await vi.advanceTimersByTimeAsync(0);
  takeAlong("c1", file("a"));
  expect([...drafts.unsent.value]).toEqual(["c1"]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual([["a"]]);

  const at = "2026-11-27T10:30:00Z";
  theirs = [
    { conversation_id: "c1", text: "", attachments: [file("a"), file("b")], written_at: at, version: 9 },
  ];
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

it("REL-1346: another tab of this browser shows at once what is typed here", async () => {
  localStorage.clear();
  server();
  drafts.followDrafts();
  drafts.unsent.value = new Set();
  const key = "trellis.draft.u.w.c9";
  localStorage.setItem(key, "from the other tab");
  dispatchEvent(new StorageEvent("storage", { key }));
  expect([...drafts.unsent.value]).toEqual(["c9"]);
  drafts.keepDraft("c9", `${drafts.draftOf("c9")}, and from here`);
  expect(localStorage.getItem(key)).toBe("from the other tab, and from here");
  vi.unstubAllGlobals();
});
