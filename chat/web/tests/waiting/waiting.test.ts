import { expect, it } from "vitest";
import { approvalsOf, idOf, newOf, stepsOf } from "../../src/waiting/steps";
import type { Waiting } from "../../src/wire";

const request = (id: string) =>
  ({
    conversation: null,
    message_id: null,
    tool_call: null,
    input_request: null,
    access_request: { id },
  }) as Waiting;
const place = { id: "c1", title: "Orders", avatar: "" };
const call = (id: string, message_id: string) =>
  ({ conversation: place, message_id, tool_call: { id }, input_request: null }) as Waiting;
const asked = (id: string) =>
  ({ conversation: place, message_id: null, tool_call: null, input_request: { id } }) as Waiting;

it("REL-878: does not offer to allow a call whose outcome is unknown", () => {
  const lost = call("b", "m1");
  lost.tool_call = { id: "b", status: "outcome_unknown" } as Waiting["tool_call"];
  expect(approvalsOf([call("a", "m1"), lost]).map((one) => one.id)).toEqual(["a"]);
});

it("puts the calls of one message together, and each loose question alone", () => {
  const steps = stepsOf([call("a", "m1"), asked("q"), call("b", "m1"), call("c", "m2")]);
  expect(steps.map((step) => [step.messageId, step.items.length])).toEqual([
    ["m1", 2],
    [null, 1],
    ["m2", 1],
  ]);
  expect(approvalsOf(steps[0]?.items ?? []).map((one) => one.id)).toEqual(["a", "b"]);
  expect(approvalsOf(steps[1]?.items ?? [])).toEqual([]);
});

it("keeps what members ask for apart from chats, each alone", () => {
  const steps = stepsOf([request("r1"), call("a", "m1"), request("r2")]);
  expect(steps.map((step) => [step.key, step.conversation?.id ?? null])).toEqual([
    ["r1", null],
    ["m1", "c1"],
    ["r2", null],
  ]);
  expect(newOf([request("r1")], [request("r1"), request("r2")]).map(idOf)).toEqual(["r2"]);
});

it("tells of what is new, and of nothing when the page has just opened", () => {
  expect(newOf(null, [asked("q")])).toEqual([]);
  expect(newOf([asked("q")], [asked("q"), call("a", "m1")])).toHaveLength(1);
});
