import { describe, expect, it } from "vitest";
import { matching, textOf } from "../../../src/chat/composer/prompts";
import { byName, typedAt, withoutTyped } from "../../../src/chat/composer/typed";
import { expand, MOST_PICKED, type Picked, variablesOf, withPicked } from "../../../src/store/attachments";
import type { Prompt } from "../../../src/wire";

describe("templates of addresses", () => {
  it("tell their variables", () => {
    expect(variablesOf("repo://{owner}/{name}{?branch,path*}{#line:3}{owner}")).toEqual([
      "owner",
      "name",
      "branch",
      "path",
      "line",
    ]);
    expect(variablesOf("note://plain")).toEqual([]);
  });
  it("are filled in as RFC 6570 says", () => {
    const values = { owner: "a b", path: "x/y", q: "1&2" };
    expect(expand("r://{owner}/{+path}{?q,gone}", values)).toBe("r://a%20b/x/y?q=1%262");
    expect(expand("r:/{/owner}{.path}", values)).toBe("r://a%20b.x%2Fy");
    expect(expand("r://{owner:1}", values)).toBe("r://a");
  });
});

it("takes a resource along once, and not more than fit", () => {
  const one: Picked = { server_id: "s", server_name: "notes", uri: "n://1", title: "1", resource_id: null };
  expect(withPicked(withPicked([], one), one)).toHaveLength(1);
  let many: readonly Picked[] = [];
  for (let i = 0; i < 20; i += 1) many = withPicked(many, { ...one, uri: `n://${i}` });
  expect(many).toHaveLength(MOST_PICKED);
});

const prompt = (name: string, title = ""): Prompt => ({
  id: name,
  server: { id: "s", name: "notes" },
  name,
  title,
  description: "",
  arguments: [],
});

describe("commands", () => {
  it("begin with a slash at the beginning, and end with the first space", () => {
    expect(typedAt("/", 1)).toMatchObject({ sign: "/", word: "" });
    expect(typedAt("/Sum", 4)).toMatchObject({ sign: "/", word: "sum" });
    expect(typedAt("/sum up", 4)).toMatchObject({ sign: "/", word: "sum", end: 4 });
    expect(withoutTyped("/sum up", { sign: "/", word: "sum", start: 0, end: 4 })).toBe("up");
    for (const text of ["", "hello /", "/sum up", "//", "/usr/bin"])
      expect(typedAt(text, text.length), text).toBeNull();
  });
  it("are found by name, title or server, the best first", () => {
    const rows = [prompt("a_summary"), prompt("summarise"), prompt("x", "Plan"), prompt("y")];
    expect(matching(rows, "sum").map((p) => p.name)).toEqual(["summarise", "a_summary"]);
    expect(matching(rows, "plan").map((p) => p.name)).toEqual(["x"]);
    expect(matching(rows, "notes")).toHaveLength(4);
  });
  it("become text to look at, with roles where there are several, and attachments", () => {
    const user = { role: "user", content: { type: "text" as const, text: "Do this" } };
    const resource = {
      role: "user",
      content: { type: "resource" as const, uri: "note://1", mime_type: null, text: "secret" },
    };
    const plain = textOf(prompt("p"), { description: "", warnings: [], messages: [user, resource] });
    expect(plain.text).toBe("Do this");
    expect(plain.picked.map((one) => one.title)).toEqual(["note://1"]);
    const answer = { role: "assistant", content: { type: "text" as const, text: "Done" } };
    const mixed = textOf(prompt("p"), { description: "", warnings: [], messages: [user, answer] });
    expect(mixed.text).toBe("User:\nDo this\n\nAssistant:\nDone");
  });
});

describe("names behind a sign", () => {
  it("stand at the caret, at the beginning or behind a space", () => {
    expect(typedAt("@Po", 3)).toEqual({ sign: "@", word: "po", start: 0, end: 3 });
    expect(typedAt("ask @poet now", 9)).toEqual({ sign: "@", word: "poet", start: 4, end: 9 });
    expect(typedAt("see\n#plan.md", 12)).toEqual({ sign: "#", word: "plan.md", start: 4, end: 12 });
    expect(typedAt("Über @Häher", 11)).toMatchObject({ word: "häher" });
  });
  it("are neither addresses nor headings nor what stands elsewhere", () => {
    expect(typedAt("mail ada@example", 16)).toBeNull();
    expect(typedAt("# Plan", 6)).toBeNull();
    expect(typedAt("ask @poet now", 13)).toBeNull();
  });
  it("leave the words around them with one space", () => {
    const cut = (text: string, caret: number) => {
      const typed = typedAt(text, caret);
      return typed && withoutTyped(text, typed);
    };
    expect(cut("ask @po now", 7)).toBe("ask now");
    expect(cut("@po now", 3)).toBe("now");
    expect(cut("ask @po", 7)).toBe("ask ");
  });
  it("are found by their beginning first", () => {
    expect(byName(["The poet", "Poetry", "Ada"], (name) => name, "poet")).toEqual(["Poetry", "The poet"]);
    expect(byName(["b", "a"], (name) => name, "")).toEqual(["b", "a"]);
  });
});
