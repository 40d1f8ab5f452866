// @vitest-environment node
/** Folders import each other in one direction, and so does what stands in one folder. Types count. */
import { expect, test } from "vitest";

const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});
const IMPORTED = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[\w/.-]+)"/g;

type Graph = Map<string, Set<string>>;

/** For each folder: which files and folders that stand in it import which others of them. */
function graphs(): Map<string, Graph> {
  const found = new Map<string, Graph>();
  for (const [name, source] of Object.entries(sources))
    for (const [, path = ""] of source.matchAll(IMPORTED)) {
      const from = name
        .slice("../src".length)
        .replace(/\.tsx?$/, ".ts")
        .split("/");
      const to = `${new URL(path, `file://${from.join("/")}`).pathname}.ts`.split("/");
      const depth = from.findIndex((part, at) => part !== to[at]);
      const folder = from.slice(0, depth).join("/");
      const graph: Graph = found.get(folder) ?? new Map();
      const [importer = "", imported = ""] = [from[depth], to[depth]];
      found.set(folder, graph.set(importer, (graph.get(importer) ?? new Set()).add(imported)));
    }
  return found;
}

/** What is left where all goes, again and again, that imports nothing of what is left: circles, and what imports them. */
function circles(graph: Graph): string[] {
  const left = [...graph].filter(([, imported]) => [...imported].some((name) => graph.has(name)));
  return left.length < graph.size ? circles(new Map(left)) : [...graph.keys()];
}

test("nothing in a folder imports in a circle", () => {
  const all = graphs();
  expect(all.size).toBeGreaterThan(15);
  expect(
    [...all].map(([folder, graph]) => [folder, circles(graph)]).filter(([, left]) => left?.length),
  ).toEqual([]);
});
