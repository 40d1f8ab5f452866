/** A check as people type it, as it is sent, and what is wrong with it. Pure. */
import t from "../../texts/checks";
import type { BudCheck } from "../../wire";

export type Problems = Record<string, string[]>;

/** What the form holds of a check, as people type it. */
export interface Typed {
  question: string;
  calls: { tool: string; arguments: string }[];
  contains: string;
  excludes: string;
  criterion: string;
  recordings: { tool: string; arguments: string; result: string; is_error: boolean }[];
}

const written = (values: object | undefined): string =>
  values && Object.keys(values).length > 0 ? JSON.stringify(values, null, 2) : "";

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export function typedOf(check: BudCheck | null): Typed {
  return {
    question: check?.question ?? "",
    calls: (check?.calls ?? []).map((one) => ({ tool: one.tool, arguments: written(one.arguments) })),
    contains: (check?.contains ?? []).join("\n"),
    excludes: (check?.excludes ?? []).join("\n"),
    criterion: check?.criterion ?? "",
    recordings: (check?.recordings ?? []).map((one) => ({
      tool: one.tool,
      arguments: written(one.arguments),
      result: one.result ?? "",
      is_error: one.is_error ?? false,
    })),
  };
}

/** The body of a request; or what cannot be read, at its field. */
export function bodyOf(typed: Typed): { body: object } | { problems: Problems } {
  const problems: Problems = {};
  const read = (text: string, field: string): object => {
    if (!text.trim()) return {};
    try {
      const value: unknown = JSON.parse(text);
      if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
    } catch {
      // Told below, as any other text that is no object.
    }
    problems[field] = [t.notJson];
    return {};
  };
  const calls = typed.calls.map((one, place) => ({
    tool: one.tool.trim(),
    arguments: read(one.arguments, `calls.${place}`),
  }));
  const recordings = typed.recordings.map((one, place) => ({
    ...one,
    tool: one.tool.trim(),
    arguments: read(one.arguments, `recordings.${place}`),
  }));
  if (Object.keys(problems).length > 0) return { problems };
  return {
    body: {
      question: typed.question,
      calls,
      contains: linesOf(typed.contains),
      excludes: linesOf(typed.excludes),
      criterion: typed.criterion,
      recordings,
    },
  };
}

const FIELDS = ["question", "calls", "contains", "excludes", "criterion", "recordings"] as const;

/** What somebody else changed of a check meanwhile, told at each field. */
export function changedMeanwhile(seen: BudCheck, stored: BudCheck): Problems {
  const problems: Problems = { "": [t.changedMeanwhile] };
  const [before, now] = [typedOf(seen), typedOf(stored)];
  for (const field of FIELDS) {
    if (JSON.stringify(before[field]) !== JSON.stringify(now[field]))
      problems[field] = [t.changedTo(inWords(now[field]))];
  }
  return problems;
}

const inWords = (value: Typed[(typeof FIELDS)[number]]): string =>
  typeof value === "string"
    ? value.split("\n").join(", ")
    : value
        .map((one) =>
          [one.tool, one.arguments, "result" in one ? `→ ${one.result}` : ""].filter(Boolean).join(" "),
        )
        .join(", ");

/** What stands at a field, with what stands at its parts. */
export function faultsOf(problems: Problems, field: string): string[] {
  return Object.entries(problems).flatMap(([name, some]) =>
    name === field || name.startsWith(`${field}.`) ? some : [],
  );
}
