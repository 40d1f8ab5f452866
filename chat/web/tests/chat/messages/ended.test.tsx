import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, describe, expect, it } from "vitest";
import type { TimelineItem } from "../../../src/store/timeline";
import { at, openPage, PLACE } from "../../page";
import { turn } from "../../rows";

openPage({ body: PLACE });
const { endInWords, useEnded } = await import("../../../src/chat/messages/ended");
const { AnswerBody } = await import("../../../src/chat/messages/answer-body");
afterEach(() => act(() => render(null, at())));

function Said({ id, isAnswering }: { id: string; isAnswering: boolean }) {
  return <p>{useEnded(id, isAnswering) ? "ended" : ""}</p>;
}
const said = (id: string, isAnswering: boolean): string | null => {
  act(() => render(<Said id={id} isAnswering={isAnswering} />, at()));
  return at().textContent;
};

it("REL-1152: those who listen hear that an answer has ended, and nothing of another chat", () => {
  expect(said("a", false)).toBe("");
  expect(said("a", true)).toBe("");
  expect(said("a", false)).toBe("ended");
  expect(said("b", false)).toBe("");
  expect(said("b", true)).toBe("");
  expect(said("c", false)).toBe("");
});

describe("REL-2074: an answer that fails", () => {
  const why = "The model provider is switched off.";
  const failed = turn({ status: "failed", error: { code: "off", message: why, can_retry: true } });
  const item = (over: object) =>
    ({
      kind: "answer",
      turn: failed,
      segments: [],
      first: null,
      last: null,
      versions: [],
      isLast: true,
      isThinking: false,
      isNoticeRepeated: false,
      ...over,
    }) as unknown as TimelineItem & { kind: "answer" };

  it("is told to those who listen once, with its reason", () => {
    expect(endInWords([item({})])).toBe(why);
    expect(endInWords([item({ turn: turn({ status: "completed" }) })])).toBe("The answer has ended.");
    expect(endInWords([])).toBe("The answer has ended.");
  });

  it("is not read out again with the chat, and no step of an answer says that the model thinks", () => {
    act(() => render(<AnswerBody item={item({})} />, at()));
    expect(at().textContent).toContain(why);
    act(() => render(<AnswerBody item={item({ turn: turn(), isThinking: true })} />, at()));
    expect(at().textContent).toContain("Thinking");
    expect(at().querySelector("[role=alert], [role=status], [aria-live]")).toBeNull();
    act(() => render(<AnswerBody item={item({})} />, at()));
    expect(at().querySelector("[role=alert], [role=status], [aria-live]")).toBeNull();
  });
});
