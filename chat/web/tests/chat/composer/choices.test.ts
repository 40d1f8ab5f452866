import { describe, expect, it } from "vitest";
import {
  choiceOf,
  choiceValue,
  factsOf,
  fittingServers,
  hasOverrides,
  isDemoAnswering,
  isOfBud,
  isPinned,
  matchingBuds,
  matchingCommands,
  matchingModels,
  NO_OVERRIDES,
  namedServers,
  pinOf,
  toolChoices,
  unusableModel,
  withOverrides,
  withPin,
  withSetting,
} from "../../../src/chat/composer/choices";
import type { AddableServer, Bud, EffectiveServer, Model, Servers } from "../../../src/wire";

const model = (name: string, more: Partial<Model> = {}): Model => ({
  provider_id: "p",
  name,
  provider_name: "Local",
  is_demo: false,
  context_tokens: null,
  sees_pictures: null,
  calls_tools: null,
  gets_tools: true,
  reasons: null,
  ends_on: null,
  gone_since: null,
  prompt_price: null,
  completion_price: null,
  prices_listed_on: null,
  ...more,
});
const addable = (name: string, scope = "workspace"): AddableServer => ({
  id: name,
  name,
  scope,
  status: "connected",
});

describe("pins", () => {
  const bud = { id: "b", name: "Notes" } as Bud;

  it("tell models of one name at two providers apart", () => {
    const pins = withPin([], pinOf(model("m", { provider_id: "p" })), true);
    expect(isPinned(model("m", { provider_id: "p" }), pins)).toBe(true);
    expect(isPinned(model("m", { provider_id: null }), pins)).toBe(false);
    expect(isPinned(bud, pins)).toBe(false);
  });

  it("come and go, each once", () => {
    const once = withPin(withPin([], pinOf(bud), true), pinOf(bud), true);
    expect(once).toHaveLength(1);
    expect(withPin(once, pinOf(bud), false)).toEqual([]);
  });
});

describe("choosing by typing", () => {
  it("finds by every word", () => {
    const models = [model("gpt-large"), model("small")];
    expect(matchingModels(models, "LOCAL lar").map((one) => one.name)).toEqual(["gpt-large"]);
    expect(matchingModels(models, "")).toHaveLength(2);
    const buds = [
      { name: "Notes", description: "Keeps your notes" },
      { name: "Clock", description: "" },
    ];
    expect(matchingBuds(buds as Bud[], "keeps").map((one) => one.name)).toEqual(["Notes"]);
  });
  it("completes commands from their beginning", () => {
    expect(matchingCommands("mo")).toEqual(["model"]);
    expect(matchingCommands("x")).toEqual([]);
    expect(matchingCommands("")).toContain("search");
  });
});

it("tells that the model that should answer is not there any more", () => {
  const bud = { id: "b", name: "Notes", model: { provider_id: "p", name: "m", is_demo: false } } as Bud;
  const known = [model("m")];
  expect(unusableModel(bud, null, known)).toBe("");
  expect(unusableModel(bud, { provider_id: "p", name: "big" }, known)).toBe("big");
  expect(unusableModel(bud, null, [model("n")])).toBe("m");
  expect(unusableModel(bud, null, null)).toBe("");
  expect(unusableModel(undefined, null, known)).toBe("");
});

it("tells what is known of a model, and nothing else", () => {
  expect(factsOf(model("m"))).toEqual([]);
  const known = { context_tokens: 128_000, sees_pictures: true, prompt_price: "2.500000" };
  expect(factsOf(model("m", { ...known, completion_price: "10.000000" }))).toEqual([
    "128k context",
    "sees pictures",
    "2.5 in, 10 out per million tokens",
  ]);
  const listed = { prompt_price: "1", completion_price: "2", prices_listed_on: "2025-11-01" };
  expect(factsOf(model("m", listed))[1]).toMatch(/^list price of .*2025/);
  expect(factsOf(model("m", { gets_tools: false, reasons: true }))).toEqual(["no tools", "reasons"]);
  expect(factsOf(model("m", { context_tokens: 1_048_576 }))).toEqual(["1M context"]);
  expect(factsOf(model("m", { ends_on: "2026-12-11" }))[0]).toMatch(/^ends on .*2026/);
});

it("knows a bud's own model by provider and name", () => {
  const bud = { model: { name: "m", provider_id: "p", is_demo: false } } as Bud;
  expect(isOfBud(model("m"), bud)).toBe(true);
  expect(isOfBud(model("m", { provider_id: "q" }), bud)).toBe(false);
  expect(isOfBud(model("demo", { is_demo: true }), bud)).toBe(false);
});

describe("a server that the text names", () => {
  const servers = [addable("orders"), addable("C++ docs"), addable("my_notes"), addable("ab")];
  const named = (text: string) => namedServers(text, servers).map((one) => one.name);
  it("is found as a whole word, in any case", () => {
    expect(named("Look it up in Orders, please")).toEqual(["orders"]);
    expect(named("reorders and preorders")).toEqual([]);
    expect(named("Ask the c++ docs.")).toEqual(["C++ docs"]);
    expect(named("put it into my notes")).toEqual(["my_notes"]);
  });
  it("is not guessed from two letters", () => expect(named("ab")).toEqual([]));
});

it("switches single tools off for the next chat", () => {
  const tools = ["read", "write"].map((name) => ({ id: name, name, is_on: true }));
  const used = { id: "s", name: "notes", is_usable: true, code: "", tools } as EffectiveServer;
  const before: Servers = { servers: [used], addable: [addable("orders")], overrides: NO_OVERRIDES };
  const overrides = { ...NO_OVERRIDES, additional_servers: ["s"], disabled_tools: ["s.read", "x.write"] };
  const after = withOverrides(before, overrides);
  expect(after.servers[0]?.tools.map((one) => [one.name, one.is_on])).toEqual([
    ["read", false],
    ["write", true],
  ]);
  expect(after.overrides).toBe(overrides);
  expect(hasOverrides(overrides)).toBe(true);
  expect(hasOverrides(NO_OVERRIDES)).toBe(false);
});

describe("the tools that a model is made to call", () => {
  const tool = (name: string, is_on = true) => ({ id: name, name, title: `The ${name}`, is_on });
  const server = (name: string, is_usable: boolean, ...tools: ReturnType<typeof tool>[]) =>
    ({ ...addable(name), is_usable, tools }) as unknown as EffectiveServer;
  const servers = [
    server("mail", true, tool("send"), tool("erase", false)),
    server("files", false, tool("read")),
  ];

  it("are those that can be called, and the one that was chosen before", () => {
    const named = { type: "function", function: { name: "files.read" } } as const;
    const offered = (current: Parameters<typeof toolChoices>[1]) =>
      toolChoices(servers, current).map(([value]) => value);
    expect(offered(null)).toEqual(["", "auto", "required", "none", "tool:mail.send"]);
    expect(offered(named)).toContain("tool:files.read");
    for (const choice of [null, "auto", "required", "none", named] as const)
      expect(choiceOf(choiceValue(choice))).toEqual(choice);
  });

  it("are found by the names of servers and tools", () => {
    const names = (typed: string) => fittingServers(servers, typed).map((one) => one.name);
    expect(names("")).toEqual(["mail", "files"]);
    expect(names("The Send")).toEqual(["mail"]);
    expect(names("files read")).toEqual(["files"]);
    expect(fittingServers([addable("orders")], "ord")).toHaveLength(1);
    expect(names("nowhere")).toEqual([]);
  });
});

it("REL-1345: each change of a chat that is about to begin leaves the others, as on the server", () => {
  const mail = { id: "m", tools: [{ id: "t1", name: "send" }] } as EffectiveServer;
  const changed = [
    { change: "disable_server", server_id: "n" } as const,
    { change: "disable_tool", tool_id: "t1" } as const,
    { change: "disable_tool", tool_id: "t1" } as const,
    { change: "disable_tool", tool_id: "unknown" } as const,
    { change: "choose_tool", tool_choice: "required" } as const,
    { change: "add_server", server_id: "n" } as const,
  ].reduce((now, what) => withSetting(now, what, [mail]), NO_OVERRIDES);
  expect(changed).toEqual({
    additional_servers: ["n"],
    disabled_servers: [],
    disabled_tools: ["m.send"],
    tool_choice: "required",
  });
  const back = [
    { change: "remove_server", server_id: "n" } as const,
    { change: "enable_tool", tool_id: "t1" } as const,
    { change: "choose_tool", tool_choice: null } as const,
    { change: "enable_server", server_id: "n" } as const,
  ].reduce((now, what) => withSetting(now, what, [mail]), changed);
  expect(back).toEqual(NO_OVERRIDES);
});

it("REL-1352: the demo model answers where it is chosen, and where it is the bud's and no other one is", () => {
  const bud = (is_demo: boolean) => ({ model: { is_demo } }) as unknown as Bud;
  const platforms = { provider_id: null, name: "demo" };
  const other = { provider_id: "p", name: "m" };
  expect(isDemoAnswering(bud(true), null, true)).toBe(true);
  expect(isDemoAnswering(bud(true), other, true)).toBe(false);
  expect(isDemoAnswering(bud(false), null, true)).toBe(false);
  expect(isDemoAnswering(bud(false), platforms, true)).toBe(true);
  // The platform has a real one.
  expect(isDemoAnswering(bud(false), platforms, false)).toBe(false);
  expect(isDemoAnswering(undefined, null, true)).toBe(true);
});
