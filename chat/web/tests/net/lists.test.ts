import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiProblem, createApi, problemOf } from "../../src/net/api";
import { groupByDay } from "../../src/sidebar/groups";
import { duration } from "../../src/ui/time";
import { conversation } from "../rows";

describe("groupByDay", () => {
  const now = new Date(2026, 10, 21, 12).getTime();
  const at = (id: string, day: Date, is_pinned = false) =>
    conversation({ id, is_pinned, updated_at: day.toISOString() });

  it("puts pinned chats first and the rest under their day, newest first", () => {
    const groups = groupByDay(
      [
        at("old", new Date(2026, 5, 1)),
        at("today", new Date(2026, 10, 21, 0, 5)),
        at("later", new Date(2026, 10, 21, 11)),
        at("pinned", new Date(2025, 1, 1), true),
        at("yesterday", new Date(2026, 10, 20, 23, 59)),
        at("week", new Date(2026, 10, 16)),
      ],
      now,
    );
    expect(groups.map((g) => g.rows.map((row) => row.id))).toEqual([
      ["pinned"],
      ["later", "today"],
      ["yesterday"],
      ["week"],
      ["old"],
    ]);
    expect(groups.slice(0, 4).map((g) => g.heading)).toEqual(["Pinned", "Today", "Yesterday", "Last 7 days"]);
  });
});

describe("problems of the API", () => {
  it("become one sentence", async () => {
    const body = {
      type: "validation_error",
      errors: [{ code: "blank", detail: "May not be blank.", attr: "title" }],
    };
    const problem = await problemOf(new Response(JSON.stringify(body), { status: 400 }));
    expect(problem).toMatchObject({ code: "blank", message: "title: May not be blank.", status: 400 });
  });
  it("say what is out of reach (REL-2684), and nothing of a fault that nobody foresaw", async () => {
    const body = {
      type: "server_error",
      errors: [{ code: "storage_unavailable", detail: "The storage is full." }],
    };
    const [full, fault] = await Promise.all(
      [507, 500].map((status) => problemOf(new Response(JSON.stringify(body), { status }))),
    );
    expect(full?.message).toBe("The storage is full.");
    expect(fault?.message).toBe("The server had a problem and logged it. Try again in a moment.");
  });
  it("hide what a broken server says", async () => {
    const problem = await problemOf(new Response("<html>Traceback</html>", { status: 502 }));
    expect(problem.message).not.toContain("Traceback");
  });
  it("say that a proxy lets less through than Trellis would take (REL-2853)", async () => {
    const ours = { errors: [{ code: "too_large", detail: "A file can have up to 10 MB." }] };
    const [own, foreign] = await Promise.all(
      [JSON.stringify(ours), "<html>413 nginx</html>"].map((body) =>
        problemOf(new Response(body, { status: 413 })),
      ),
    );
    expect(own?.message).toBe("A file can have up to 10 MB.");
    expect(foreign?.message).toContain("proxy");
  });

  afterEach(() => vi.unstubAllGlobals());
  it("carry the workspace and the CSRF token, and follow pages by path only", async () => {
    const seen: [string, RequestInit][] = [];
    vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
      seen.push([url, init]);
      return new Response(JSON.stringify({ results: [], next: null, previous: null }));
    });
    const api = createApi("/api/", "token", "demo");
    await api.conversations({ page: "https://internal.example/api/conversations/?cursor=x" });
    await api.startConversation("b1", "key", {});
    expect(seen[0]?.[0]).toBe("/api/conversations/?cursor=x");
    const headers = new Headers(seen[1]?.[1].headers);
    expect(headers.get("X-CSRFToken")).toBe("token");
    expect(headers.get("X-Workspace")).toBe("demo");
    expect(headers.get("Idempotency-Key")).toBe("key");
  });
  it("name a missing connection", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
    await expect(createApi("/api/", "t", "demo").conversation("c")).rejects.toBeInstanceOf(ApiProblem);
  });
});

describe("duration", () => {
  it.each([
    [5, "5 ms"],
    [3240, "3.2 s"],
    [42_000, "42 s"],
    [125_000, "2 min 5 s"],
    [86_340_000, "23 h 59 min"],
  ])("%i", (ms, text) => expect(duration(ms)).toBe(text));
});
