import { expect, it } from "vitest";
import { afterOthers, choicesTaken } from "../../../src/chat/composer/choices-under-way";

it("REL-1702: what is sent waits for what was chosen before, one choice after the other", async () => {
  const order: string[] = [];
  let take = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    take = resolve;
  });
  const first = afterOthers("c", () => held.then(() => order.push("first")));
  const second = afterOthers("c", async () => order.push("second"));
  const sent = choicesTaken("c").then(() => order.push("sent"));
  await choicesTaken("another chat");
  expect(order).toEqual([]);
  take();
  await Promise.all([first, second, sent]);
  expect(order).toEqual(["first", "second", "sent"]);
});

it("REL-1702: a choice that is refused is told to whoever chose, and keeps nothing waiting", async () => {
  const refused = afterOthers("c", () => Promise.reject(new Error("no")));
  const next = afterOthers("c", async () => "taken");
  await expect(refused).rejects.toThrow("no");
  expect(await next).toBe("taken");
  await choicesTaken("c");
});

it("REL-1802: what is sent after several choices knows whether all were taken", async () => {
  const refused = afterOthers("c", () => Promise.reject(new Error("no")));
  void afterOthers("c", async () => "taken");
  const sent = choicesTaken("c");
  await expect(refused).rejects.toThrow("no");
  expect(await sent).toBe(false);
  expect(await choicesTaken("c")).toBe(true);
});
