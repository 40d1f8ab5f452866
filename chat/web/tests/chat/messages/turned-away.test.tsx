import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import type { AnswerItem } from "../../../src/store/timeline";
import { at, openPage, PLACE } from "../../page";
import { message, turn } from "../../rows";

openPage({ body: PLACE });
const { AnswerBody } = await import("../../../src/chat/messages/answer-body");
const { AnswerActions } = await import("../../../src/chat/messages/answer-actions");
const { socketStatus } = await import("../../../src/app/connection");

const failed = turn({ status: "failed", error: { code: "off", message: "Off.", can_retry: true } });
const item = { turn: failed, segments: [], isLast: true, isThinking: false } as unknown as AnswerItem;
const pressable = () => [...at().querySelectorAll("button")].filter((one) => !one.disabled).length;

/** REL-2592 */
it("whoever is turned away is offered nothing about an answer, and again once they may return", () => {
  const last = message({ id: "m1", role: "assistant", text: "Hi" });
  act(() => {
    socketStatus.value = "open";
    render([<AnswerBody item={item} />, <AnswerActions turn={failed} last={last} text="Hi" />], at());
  });
  const before = pressable();
  expect(at().textContent).toContain("Retry");
  for (const status of ["forbidden", "access_suspended", "workspace_suspended", "account_off"] as const) {
    act(() => void (socketStatus.value = status));
    expect(at().textContent).not.toContain("Retry");
    expect(pressable()).toBe(0);
    act(() => void (socketStatus.value = "open"));
    expect(pressable()).toBe(before);
  }
});
