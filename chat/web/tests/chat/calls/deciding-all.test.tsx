import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, expect, it, vi } from "vitest";
import type { ToolCall } from "../../../src/wire";
import { at, openPage, PLACE } from "../../page";
import { toolCall } from "../../rows";

let all: typeof import("../../../src/chat/calls/decide-all");
let app: typeof import("../../app");
beforeAll(async () => {
  openPage({ body: PLACE });
  app = await import("../../app");
  all = await import("../../../src/chat/calls/decide-all");
});
afterEach(() => {
  act(() => render(null, at()));
  vi.restoreAllMocks();
});

const calls = ["a", "b", "c"].map((id) => toolCall({ id, status: "waiting_for_approval" }));
const buttons = () => [...at().querySelectorAll("button")];

/** What is sent over the socket; each is answered so. */
function sentWith(answer: () => Promise<never>) {
  const sent: unknown[] = [];
  vi.spyOn(app.socket, "ask").mockImplementation((command) => {
    sent.push(command);
    return answer();
  });
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => Response.json([]));
  return sent;
}

it("REL-1149: one click allows each call of a step, in their order", async () => {
  const sent = sentWith(async () => ({}) as never);
  act(() => render(<all.DecideAll calls={calls} />, at()));
  expect(buttons().map((one) => one.textContent?.trim())).toEqual(["Allow all 3", "Refuse all 3…"]);
  await act(async () => buttons()[0]?.click());
  const wanted = ["a", "b", "c"].map((tool_call_id) => ({
    type: "decide",
    tool_call_id,
    decision: "approve",
  }));
  await vi.waitFor(() => expect(sent).toEqual(wanted));
});

it.each(["", " They are there already "])(
  "REL-1149, REL-1486: all calls are refused with the same reason, or with none (%s)",
  async (reason) => {
    const sent = sentWith(async () => ({}) as never);
    act(() => render(<all.DecideAll calls={calls} />, at()));
    const refuse = () => buttons().find((one) => one.textContent?.startsWith("Refuse all 3"));
    await act(async () => refuse()?.click());
    act(() =>
      buttons()
        .find((one) => one.textContent === "Back")
        ?.click(),
    );
    expect(buttons()).toHaveLength(2);
    await act(async () => refuse()?.click());
    const field = at().querySelector("input");
    expect(document.activeElement).toBe(field);
    if (!field) throw new Error("no field");
    field.value = reason;
    await act(async () => void field.dispatchEvent(new Event("input", { bubbles: true })));
    await act(async () => refuse()?.click());
    const note = reason.trim();
    const wanted = ["a", "b", "c"].map((tool_call_id) => ({
      type: "decide",
      tool_call_id,
      decision: "refuse",
      ...(note && { note }),
    }));
    await vi.waitFor(() => expect(sent).toEqual(wanted));
    await vi.waitFor(() => expect(buttons()).toHaveLength(2));
  },
);

it("REL-1149: where one decision fails, the others are not made", async () => {
  const sent = sentWith(() => Promise.reject(new Error("It was decided already.")));
  act(() => render(<all.DecideAll calls={calls} />, at()));
  await act(async () => buttons()[0]?.click());
  await vi.waitFor(() => expect(buttons()[0]?.disabled).toBe(false));
  expect(sent).toEqual([{ type: "decide", tool_call_id: "a", decision: "approve" }]);
});

it("REL-1347: arguments that were changed on a card go along when all calls are allowed", async () => {
  const { ApprovalCard } = await import("../../../src/chat/calls/approval-card");
  const edited = await import("../../../src/chat/calls/edited-arguments");
  const sent = sentWith(async () => ({}) as never);
  const [first, second, third] = calls as [ToolCall, ToolCall, ToolCall];
  edited.editArguments(second, { path: "/tmp/one" });
  edited.editArguments(third, null);
  act(() => render(<all.DecideAll calls={calls} />, at()));
  // What does not fit yet is not sent as it was before.
  expect(buttons().map((one) => one.disabled)).toEqual([true, false]);
  act(() => edited.leaveArguments(third));
  expect(buttons()[0]?.textContent).toContain("Allow all 3, with your changes");
  await act(async () => buttons()[0]?.click());
  const approve = (tool_call_id: string, more = {}) => ({
    type: "decide",
    tool_call_id,
    decision: "approve",
    ...more,
  });
  await vi.waitFor(() =>
    expect(sent).toEqual([
      approve(first.id),
      approve(second.id, { arguments: { path: "/tmp/one" } }),
      approve(third.id),
    ]),
  );
  expect(edited.isBeingEdited(second)).toBe(false);
  // What somebody changes is there again after another chat was shown.
  edited.editArguments(first, { path: "/tmp/two" });
  Element.prototype.scrollIntoView = () => {};
  act(() => render(<ApprovalCard call={first} />, at()));
  expect(at().querySelector("textarea, input")).not.toBeNull();
  expect(at().textContent).toContain("Undo changes");
  act(() =>
    buttons()
      .find((one) => one.textContent === "Undo changes")
      ?.click(),
  );
  expect(edited.isBeingEdited(first)).toBe(false);
});

it("a single call is decided on its own card", () => {
  act(() => render(<all.DecideAll calls={calls.slice(1, 2)} />, at()));
  expect(buttons()).toEqual([]);
});
