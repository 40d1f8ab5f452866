/**
 * Neighbours of the list in groups.
 *
 * A browser leaves out what is far from the visible part, and still places each child of the list anew whenever one
 * comes: with thousands of messages that takes longer than a frame, with hundreds of groups it does not.
 */
import type { TimelineItem } from "./timeline";

const MOST = 40;

export interface Group {
  key: string;
  items: readonly TimelineItem[];
}

/**
 * The items, in groups of at most 40.
 *
 * @param before the groups of the moment before. An item stays in its group, since it would lose its state on the page
 * when it moves; and a group of which nothing changed is the same object again.
 */
export function grouped(items: readonly TimelineItem[], before: readonly Group[] = []): readonly Group[] {
  const keys = keysOf(items, before);
  const known = new Map(before.map((group) => [group.key, group]));
  const found: { key: string; items: TimelineItem[] }[] = [];
  for (const [at, item] of items.entries()) {
    const key = keys[at] ?? item.key;
    const last = found.at(-1);
    if (last?.key === key) last.items.push(item);
    else found.push({ key, items: [item] });
  }
  return found.map((group) => {
    const old = known.get(group.key);
    const isSame =
      old?.items.length === group.items.length && old.items.every((item, at) => item === group.items[at]);
    return old && isSame ? old : group;
  });
}

/** The key of each item's group: that of before, else its neighbour's where there is room, else its own. */
function keysOf(items: readonly TimelineItem[], before: readonly Group[]): string[] {
  const known = new Map(before.flatMap((group) => group.items.map((item) => [item.key, group.key])));
  const taken = items.map((item) => known.get(item.key));
  const sizes = new Map<string, number>();
  for (const key of taken) if (key !== undefined) sizes.set(key, (sizes.get(key) ?? 0) + 1);

  const join = (at: number, neighbour: string | undefined) => {
    const item = items[at];
    if (!item || taken[at] !== undefined) return;
    const hasRoom = neighbour !== undefined && (sizes.get(neighbour) ?? 0) < MOST;
    const key = hasRoom ? neighbour : item.key;
    taken[at] = key;
    sizes.set(key, (sizes.get(key) ?? 0) + 1);
  };
  // What comes above the first known one is joined from below, all else from above.
  const first = taken.findIndex((key) => key !== undefined);
  for (let at = first - 1; at >= 0; at -= 1) join(at, taken[at + 1]);
  for (let at = 0; at < items.length; at += 1) join(at, taken[at - 1]);
  return whole(taken, items);
}

/** A group is in one piece: where another branch came between, what follows is a group of its own. */
function whole(keys: readonly (string | undefined)[], items: readonly TimelineItem[]): string[] {
  const ended = new Set<string>();
  const found: string[] = [];
  let own: string | undefined;
  let last: string | undefined;
  for (const [at, item] of items.entries()) {
    const key = keys[at] ?? item.key;
    if (key !== last) {
      if (last !== undefined) ended.add(last);
      own = ended.has(key) ? item.key : key;
      last = key;
    }
    found.push(own ?? key);
  }
  return found;
}
