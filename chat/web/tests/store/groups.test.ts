import { describe, expect, it } from "vitest";
import { type Group, grouped } from "../../src/store/groups";
import type { TimelineItem } from "../../src/store/timeline";
import { message } from "../rows";

const item = (at: number): TimelineItem => ({
  kind: "user",
  key: `k${at}`,
  message: message({ id: `m${at}`, role: "user" }),
  versions: [],
  summarised: undefined,
});
const items = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => item(from + at));
const sizes = (groups: readonly Group[]) => groups.map((group) => group.items.length);
const flat = (groups: readonly Group[]) => groups.flatMap((group) => group.items);

describe("groups of the list", () => {
  it("hold at most 40 items, in their order", () => {
    const all = items(0, 100);
    const groups = grouped(all);
    expect(sizes(groups)).toEqual([40, 40, 20]);
    expect(flat(groups)).toEqual(all);
  });

  it("stay where items come above and below, so that nothing on the page moves to another place", () => {
    const middle = items(50, 70);
    const before = grouped(middle);
    const all = [...items(0, 50), ...middle, ...items(70, 95)];
    const after = grouped(all, before);
    expect(flat(after)).toEqual(all);
    const home = after.find((group) => group.key === before[0]?.key);
    for (const one of middle) expect(home?.items).toContain(one);
    expect(new Set(after.map((group) => group.key)).size).toBe(after.length);
  });

  it("are the same objects where nothing of them changed", () => {
    const all = items(0, 90);
    const before = grouped(all);
    const after = grouped([...all.slice(0, 89), item(89)], before);
    expect(after.map((group, at) => group === before[at])).toEqual([true, true, false]);
  });

  it("are never in two pieces, where another branch comes between their items", () => {
    const all = items(0, 30);
    const before = grouped(all);
    const mixed = [...all.slice(0, 5), ...items(100, 160), ...all.slice(20, 30)];
    const after = grouped(mixed, before);
    expect(flat(after)).toEqual(mixed);
    expect(new Set(after.map((group) => group.key)).size).toBe(after.length);
    expect(Math.max(...sizes(after))).toBeLessThanOrEqual(40);
  });
});
