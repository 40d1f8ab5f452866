import { expect, it } from "vitest";
import { type Config, type ServerRow, startPicker, usedCount } from "../../src/buds/tools";
import t from "../../src/texts/buds";

const server = (count: number): ServerRow => ({
  id: "a",
  name: "Clock",
  count,
  tools: [],
  left_out: {},
});
const tool = (name: string) => ({ name, title: "", description: "" });

function picker(load: () => Promise<Record<string, ReturnType<typeof tool>[]>>) {
  const root = document.createElement("div");
  const count = document.createElement("span");
  const config: Config = { servers: ["a"] };
  startPicker(
    root,
    count,
    [server(2)],
    config,
    () => false,
    () => undefined,
    load,
  );
  return { root, count };
}

it("counts tools that are not here by the names that a bud keeps", () => {
  expect(usedCount({ disabled_tools: ["a.now", "b.now"] }, server(3))).toBe(2);
  expect(usedCount({ available_tools: ["a.now", "a.then", "b.now"] }, server(3))).toBe(2);
  expect(usedCount({ available_tools: ["a.now"], disabled_tools: ["a.now"] }, server(3))).toBe(0);
});

it("REL-2723: counts no tool that no bud gets now, and says at it why", () => {
  const off = { ...server(3), left_out: { then: "This tool is switched off." } };
  expect(usedCount({ disabled_tools: ["a.then"] }, off)).toBe(2);
  expect(usedCount({ disabled_tools: ["a.now"] }, off)).toBe(1);
  expect(usedCount({ available_tools: ["a.now", "a.then"] }, off)).toBe(1);
  const here = { ...off, tools: ["now", "then", "constructor"].map(tool) };
  const [root, count] = [document.createElement("div"), document.createElement("span")];
  const nothing = () => undefined;
  startPicker(root, count, [here], { servers: ["a"] }, () => false, nothing);
  expect(count.textContent).toBe(t.toolsInUse(2, 1));
  expect([...root.querySelectorAll(".tool-choice")].map((row) => row.textContent)).toEqual([
    "now",
    "thenThis tool is switched off.",
    "constructor",
  ]);
});

it("loads many tools once, when somebody turns to them", async () => {
  let loads = 0;
  const { root, count } = picker(async () => {
    loads += 1;
    return { a: [tool("now"), tool("then")] };
  });
  expect(count.textContent).toBe(t.toolsInUse(2, 1));
  expect(root.textContent).toContain(t.loadingTools);
  expect(loads).toBe(0);
  const search = root.querySelector("input");
  search?.dispatchEvent(new Event("focus"));
  search?.dispatchEvent(new Event("focus"));
  await Promise.resolve();
  await Promise.resolve();
  expect(loads).toBe(1);
  expect([...root.querySelectorAll(".tool-choice")].map((row) => row.textContent)).toEqual(["now", "then"]);
  expect(count.textContent).toBe(t.toolsInUse(2, 1));
});

it("keeps the focus where a server was opened", async () => {
  const { root } = picker(async () => ({ a: [tool("now")] }));
  document.body.append(root);
  const head = root.querySelector("summary");
  head?.focus();
  head?.click();
  await Promise.resolve();
  await Promise.resolve();
  expect(root.querySelector(".tool-choice")?.textContent).toBe("now");
  expect(root.querySelector("details")?.open).toBe(true);
  expect(document.activeElement).toBe(root.querySelector("summary"));
});

it("says what went wrong, and tries again", async () => {
  let loads = 0;
  const { root } = picker(async () => {
    loads += 1;
    throw new Error("away");
  });
  const turn = async () => {
    root.querySelector("input")?.dispatchEvent(new Event("focus"));
    await Promise.resolve();
    await Promise.resolve();
  };
  await turn();
  expect(root.textContent).toContain(t.toolsFailed);
  await turn();
  expect(loads).toBe(2);
});

it("REL-792: says of a server at once how many of its tools are used", async () => {
  const { root, count } = picker(async () => ({ a: [tool("now"), tool("then")] }));
  document.body.append(root);
  root.querySelector("input")?.dispatchEvent(new Event("focus"));
  await Promise.resolve();
  await Promise.resolve();
  const head = root.querySelector("summary .help");
  expect(head?.textContent).toBe(t.ofTools(2, 2));
  root.querySelector<HTMLInputElement>(".tool-choice input")?.click();
  expect(head?.textContent).toBe(t.ofTools(1, 2));
  expect(count.textContent).toBe(t.toolsInUse(1, 1));
});
