import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import type { AnswerItem } from "../../../src/store/timeline";
import { at, openPage, PLACE } from "../../page";
import { message, turn } from "../../rows";

openPage({ body: PLACE });
const { AnswerBody } = await import("../../../src/chat/messages/answer-body");
const { AnswerActions } = await import("../../../src/chat/messages/answer-actions");
const { ConnectionBanner } = await import("../../../src/app/banner");
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

/** REL-3317 */
it("whoever needs two-step verification is led to it, and to a try without a reload", () => {
  act(() => {
    socketStatus.value = "two_steps_needed";
    render(
      [<AnswerActions turn={failed} last={message({ id: "m1" })} text="Hi" />, <ConnectionBanner />],
      at(),
    );
  });
  expect(at().textContent).toContain("requires two-step verification");
  expect(at().querySelector("a")?.getAttribute("href")).toBe("/accounts/2fa/");
  expect(at().textContent).toContain("Try now");
  expect(at().textContent).not.toContain("Retry");
  act(() => void (socketStatus.value = "open"));
  expect(at().textContent).not.toContain("two-step");
});
