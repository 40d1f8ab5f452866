import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { approvalsOf, newOf, stepsOf } from "../../src/waiting/steps";
import type { Waiting } from "../../src/wire";
import { at, openPage, PLACE } from "../page";
import { approvalOf, conversation, toolCall } from "../rows";

let cards: typeof import("../../src/chat/calls/approval-card");

beforeAll(async () => {
  openPage({ body: PLACE });
  Element.prototype.scrollIntoView = () => {};
  cards = await import("../../src/chat/calls/approval-card");
});

const draw = (node: Parameters<typeof render>[0]): void => {
  act(() => render(node, at()));
};
afterEach(() => {
  draw(null);
  vi.restoreAllMocks();
});

const approval = approvalOf({
  rule: "call_rule.r1",
  reason: "The call rule “Big sums” asks for a second person.",
  can_remember: false,
  needs_second_person: true,
  call_rule: { id: "r1", name: "Big sums" },
});
const call = toolCall({ status: "waiting_for_approval", approval });
const nothing: Waiting = {
  conversation: null,
  message_id: null,
  tool_call: null,
  input_request: null,
  access_request: null,
  asked_by: null,
};
const buttons = () => [...at().querySelectorAll("button")].map((one) => one.textContent?.trim());

describe("a call that waits for a second person", () => {
  it("REL-1095: says so to whoever asked, who can take it back and not allow it", () => {
    draw(<cards.ApprovalCard call={call} />);
    expect(at().textContent).toContain("Waits for an admin (rule “Big sums”)");
    expect(buttons()).toEqual(["Raw", "Copy", "Take it back…"]);
  });

  it("REL-1095: shows an admin who asked and the rule, and sends their decision", async () => {
    const sent = vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json(call));
    const onDecided = vi.fn();
    draw(<cards.ApprovalCard call={call} askedBy="Ada" onDecided={onDecided} />);
    expect(at().querySelector("h3")?.textContent).toContain("for Ada?");
    expect(at().querySelector("a")?.getAttribute("href")).toBe("/s/call-rules/r1/");
    expect(buttons()).toEqual(["Raw", "Copy", "Allow once", "Refuse…"]);
    await act(async () => at().querySelector<HTMLButtonElement>(".btn-primary")?.click());
    expect(String(sent.mock.calls[0]?.[0])).toContain(`tool-calls/${call.id}/decide/`);
    expect(JSON.parse(String(sent.mock.calls[0]?.[1]?.body))).toEqual({ decision: "approve", note: "" });
    await vi.waitFor(() => expect(onDecided).toHaveBeenCalled());
  });

  it("REL-1111: needs an admin in the list of chats, and whoever asked only where they can act", async () => {
    const app = await import("../app");
    const state = await import("../../src/waiting/state");
    const { ConversationRow } = await import("../../src/sidebar/row");
    const row = conversation({ id: "c1", status: "waiting" });
    const tag = () => at().querySelector(".tag")?.textContent;
    state.waitingItems.value = null; // another file's tests may have asked
    state.waitingForOthers.value = new Set();
    state.tellWhoDecides();
    draw(<ConversationRow row={row} />);
    act(() => {
      app.list.value = [row];
    });
    expect(tag()).toBe("needs you"); // nobody knows better yet
    vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json([]));
    await act(() => state.loadWaiting());
    expect(tag()).toBe("needs an admin");
    const asked = { ...nothing, conversation: { id: "c1", title: "", avatar: "" }, tool_call: call };
    vi.spyOn(globalThis, "fetch").mockResolvedValue(Response.json([asked]));
    await act(() => state.loadWaiting());
    expect(tag()).toBe("needs you");
    let answer: (response: Response) => void = () => undefined;
    vi.spyOn(globalThis, "fetch").mockReturnValue(new Promise((resolve) => (answer = resolve)));
    const onItsWay = state.loadWaiting();
    act(() => state.fallBehind()); // the call began after the server had looked
    answer(Response.json([]));
    await act(() => onItsWay);
    expect(tag()).toBe("needs you");
    act(() => {
      app.list.value = null;
      state.waitingItems.value = null;
    });
  });

  it("REL-1095: is decided alone, belongs to no chat, and is told of", () => {
    const item: Waiting = { ...nothing, tool_call: call, asked_by: "Ada" };
    expect(stepsOf([item]).map((step) => step.conversation)).toEqual([null]);
    expect(approvalsOf([item])).toEqual([]);
    expect(newOf([], [item])).toEqual([item]);
  });
});
