import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it } from "vitest";
import { useEnded } from "../src/chat/ended";
import { at, openPage, PLACE } from "./page";

openPage({ body: PLACE });
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
