import { describe, expect, it } from "vitest";
import { parseTable } from "../../src/artifacts/csv";
import { diffLines, folded } from "../../src/artifacts/diff";
import { isReadable, kindWord, languageOf, makerWord, mayRun, sizeWord } from "../../src/artifacts/words";
import { parseEvent } from "../../src/net/events";
import { emptyConversation, reduce } from "../../src/store/conversation";
import type { Artifact, ArtifactVersion } from "../../src/wire";
import { CONVERSATION, snapshot } from "../rows";

const version: ArtifactVersion = {
  number: 1,
  kind: "markdown",
  content_type: "text/markdown",
  size: 3,
  sha256: "",
  origin: "upload",
  made_by: "Max",
  tool_call_id: null,
  message_id: null,
  created_at: "2026-11-21T10:00:00Z",
};

function artifact(changes: Partial<Artifact> = {}): Artifact {
  return {
    id: "a1",
    conversation_id: CONVERSATION,
    name: "note.md",
    is_deleted: false,
    version,
    created_at: version.created_at,
    updated_at: version.created_at,
    ...changes,
  };
}

/** Both texts out of their difference. */
function sides(lines: ReturnType<typeof diffLines>): [string[], string[]] {
  return [
    lines.filter((l) => l.change !== "added").map((l) => l.text),
    lines.filter((l) => l.change !== "removed").map((l) => l.text),
  ];
}

describe("differences", () => {
  it("tells what was added and removed", () => {
    const lines = diffLines("a\nb\nc\n", "a\nx\nc\nd\n");
    expect(lines.map((l) => `${l.change[0]}${l.text}`)).toEqual(["sa", "rb", "ax", "sc", "ad"]);
    expect(lines.map((l) => [l.before, l.after])).toEqual([
      [1, 1],
      [2, null],
      [null, 2],
      [3, 3],
      [null, 4],
    ]);
  });

  it("gives both texts back, whatever they are, with as few changes as there can be", () => {
    let seed = 7;
    const random = (n: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % n;
    };
    for (let round = 0; round < 300; round += 1) {
      const make = () => Array.from({ length: random(12) }, () => "abc"[random(3)] as string);
      const [a, b] = [make(), make()];
      const lines = diffLines(a.join("\n"), b.join("\n"));
      expect(sides(lines)).toEqual([a, b]);
      const kept = lines.filter((l) => l.change === "same").length;
      expect(kept).toBe(longest(a, b));
    }
  });

  it("gives up searching in texts that have little in common, and is still right", () => {
    const a = Array.from({ length: 3000 }, (_, i) => `a${i}`);
    const b = Array.from({ length: 3000 }, (_, i) => `b${i}`);
    expect(sides(diffLines(a.join("\n"), b.join("\n")))).toEqual([a, b]);
  });

  it("folds what is far from any change", () => {
    const a = Array.from({ length: 50 }, (_, i) => `${i}`);
    const b = a.map((line) => (line === "25" ? "x" : line));
    const shown = folded(diffLines(a.join("\n"), b.join("\n")));
    expect(shown).toHaveLength(10);
    expect(shown[0]).toEqual({ change: "fold", count: 22 });
    expect(folded(diffLines("a\nb", "a\nb"))).toEqual([{ change: "fold", count: 2 }]);
  });
});

function longest(a: string[], b: string[]): number {
  const row = new Array<number>(b.length + 1).fill(0);
  for (const x of a) {
    let diagonal = 0;
    b.forEach((y, j) => {
      const above = row[j + 1] as number;
      row[j + 1] = x === y ? diagonal + 1 : Math.max(above, row[j] as number);
      diagonal = above;
    });
  }
  return row[b.length] as number;
}

describe("tables", () => {
  it("reads quotes, line breaks in cells and other separators", () => {
    expect(parseTable('a,"b ""c""\nd"\r\n1,2').rows).toEqual([
      ["a", 'b "c"\nd'],
      ["1", "2"],
    ]);
    expect(parseTable("a;b;c\n1;2,5;3").rows[1]).toEqual(["1", "2,5", "3"]);
    expect(parseTable("a\tb\n\n1\t2\n").rows).toHaveLength(2);
    expect(parseTable("").rows).toEqual([]);
  });

  it("draws no more than a table can hold, and counts the rest", () => {
    const table = parseTable("a,b,c\n".repeat(10), 4, 2);
    expect(table.rows).toEqual(Array(4).fill(["a", "b"]));
    expect([table.more, table.cut]).toEqual([6, 1]);
  });
});

describe("words", () => {
  it("says sizes as the server does", () => {
    expect([0, 1023, 1024, 12_345, 150_039, 1_048_063, 1_048_064, 10_485_760].map(sizeWord)).toEqual([
      "0 B",
      "1023 B",
      "1 KB",
      "12.1 KB",
      "147 KB",
      "1020 KB",
      "1 MB",
      "10 MB",
    ]);
  });

  it("says who made a version and what it is", () => {
    expect(makerWord(version)).toBe("uploaded by Max");
    expect(makerWord({ ...version, origin: "model" })).toBe("written by the assistant");
    expect(kindWord("csv")).toBe("Table");
    expect(languageOf("a/b.test.PY")).toBe("python");
    expect(languageOf("README")).toBeNull();
    expect(isReadable("pdf")).toBe(false);
    expect(["<SCRIPT>", "<p onclick = x>", '<p a=""onload=x>', "<a href=javascript:x>"].every(mayRun)).toBe(
      true,
    );
    expect(mayRun("<p>one = two, on=off")).toBe(false);
  });
});

describe("the conversation's files", () => {
  it("come with the snapshot, change with events and go when they are deleted", () => {
    const first = reduce(emptyConversation(CONVERSATION), { ...snapshot(), artifacts: [artifact()] });
    expect(first.artifacts).toHaveLength(1);
    const seq = first.seq as number;
    const frame = {
      type: "artifact.changed",
      conversation_id: CONVERSATION,
      seq: seq + 1,
      artifact: artifact({ name: "b.md" }),
    } as const;
    expect(parseEvent(JSON.stringify(frame))).toEqual(frame);
    const changed = reduce(first, frame);
    expect(changed.artifacts.map((a) => a.name)).toEqual(["b.md"]);
    const gone = reduce(changed, {
      type: "artifact.changed",
      conversation_id: CONVERSATION,
      seq: seq + 2,
      artifact: artifact({ is_deleted: true }),
    });
    expect(gone.artifacts).toEqual([]);
    expect(gone.stale).toBe(false);
  });
});
