/** Conversations under the headings people look for them by: pinned first, then by day. Pure. */
import { daysBetween, month } from "../formats";
import t from "../texts/shell";
import type { Conversation } from "../wire";

export interface Group {
  heading: string;
  rows: Conversation[];
}

export function headingFor(iso: string, now: number): string {
  const days = daysBetween(iso, now);
  if (days <= 0) return t.today;
  if (days === 1) return t.yesterday;
  if (days < 7) return t.last7Days;
  if (days < 30) return t.last30Days;
  return month(iso);
}

export function groupByDay(rows: readonly Conversation[], now: number): Group[] {
  const sorted = [...rows].sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
  const groups: Group[] = [];
  const pinned = sorted.filter((row) => row.is_pinned);
  if (pinned.length > 0) groups.push({ heading: t.pinned, rows: pinned });
  for (const row of sorted) {
    if (row.is_pinned) continue;
    const heading = headingFor(row.updated_at, now);
    const group = groups.find((g) => g.heading === heading);
    if (group) group.rows.push(row);
    else groups.push({ heading, rows: [row] });
  }
  return groups;
}
