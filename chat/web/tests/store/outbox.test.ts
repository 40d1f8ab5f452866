import { describe, expect, it } from "vitest";
import { NEW, Outbox, type Place, type Unsent } from "../../src/store/outbox";

const NOW = Date.parse("2026-11-23T12:00:00Z");

function place(): Place & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
  };
}

function unsent(client_id: string, over: Partial<Unsent> = {}): Unsent {
  return {
    client_id,
    conversation_id: "c1",
    text: "hello",
    sent_at: "2026-11-23T11:59:00Z",
    attachments: [],
    bud_id: null,
    compare: [],
    error: null,
    when_busy: "queue",
    ...over,
  };
}

describe("messages that were not confirmed", () => {
  it("REL-652: are there after a reload, of each chat, in their order, until they are", () => {
    const kept = place();
    const before = new Outbox("k", kept, () => NOW);
    before.keep(unsent("a"));
    before.keep(unsent("b", { conversation_id: "c2" }));
    before.keep(unsent("c", { bud_id: "poet" }));
    before.mark("c", "Too long.");
    const after = new Outbox("k", kept, () => NOW);
    expect(after.read().map((row) => row.client_id)).toEqual(["a", "b", "c"]);
    expect(after.of("c1").map((row) => row.error)).toEqual([null, "Too long."]);
    after.drop("a");
    expect(before.of("c1").map((row) => row.client_id)).toEqual(["c"]);
  });

  it("REL-575: may begin a chat, and then belong to it under their own id", () => {
    const outbox = new Outbox("k", place(), () => NOW);
    outbox.keep(unsent("a", { conversation_id: NEW, begins: { bud_id: null, choice: {} } }));
    expect(outbox.of(NEW).map((row) => row.client_id)).toEqual(["a"]);
    outbox.keep(unsent("a", { conversation_id: "c9" }));
    expect(outbox.of(NEW)).toEqual([]);
    expect(outbox.of("c9").map((row) => row.begins)).toEqual([undefined]);
  });

  it("are forgotten after a week, and what is broken is left out", () => {
    const kept = place();
    kept.values.set(
      "k",
      JSON.stringify([null, 3, { text: "x" }, unsent("old", { sent_at: "2026-11-01T00:00:00Z" })]),
    );
    expect(new Outbox("k", kept, () => NOW).read()).toEqual([]);
    kept.values.set("k", "{");
    expect(new Outbox("k", kept, () => NOW).read()).toEqual([]);
  });

  it("are not forgotten for older ones where the browser is full", () => {
    const kept = place();
    const outbox = new Outbox("k", kept, () => NOW);
    outbox.keep(unsent("a"));
    const { setItem } = kept;
    kept.setItem = () => {
      throw new Error("full");
    };
    outbox.keep(unsent("b"));
    outbox.drop("a");
    expect(outbox.read().map((row) => row.client_id)).toEqual(["b"]);
    kept.setItem = setItem;
    outbox.keep(unsent("c"));
    expect(new Outbox("k", kept, () => NOW).read().map((row) => row.client_id)).toEqual(["b", "c"]);
  });

  it("stay with the page where the browser keeps nothing", () => {
    const none: Place = {
      getItem: () => {
        throw new Error("forbidden");
      },
      setItem: () => {
        throw new Error("forbidden");
      },
    };
    const outbox = new Outbox("k", none, () => NOW);
    outbox.keep(unsent("a"));
    expect(outbox.of("c1")).toHaveLength(1);
  });
});
