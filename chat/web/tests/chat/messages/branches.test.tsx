import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../../page";
import { message } from "../../rows";

openPage({ body: PLACE });
const { BranchArrows } = await import("../../../src/chat/messages/branches");
const { socket } = await import("../../../src/app/connection");
vi.spyOn(socket, "ask").mockResolvedValue({} as never);

const draw = (id: string, versions: readonly string[] = ["m1", "m2", "m3"]) =>
  act(() =>
    render(<BranchArrows key={id} message={message({ id })} versions={versions} what="wording" />, at()),
  );
const focused = () => document.activeElement?.getAttribute("aria-label");
const press = () => act(() => (document.activeElement as HTMLButtonElement).click());

it("REL-2215: whoever goes through versions by keys goes on with the same arrow, and at the end with the other", () => {
  draw("m3");
  at().querySelector("button")?.focus();
  const label = focused();
  press();
  draw("m2");
  expect(focused()).toBe(label);
  press();
  draw("m1");
  expect(focused()).toBe("Later version");
});

it("REL-2215: whoever has gone on meanwhile keeps the focus", () => {
  draw("m3");
  at().querySelector("button")?.click();
  const field = document.body.appendChild(document.createElement("input"));
  field.focus();
  draw("m2");
  expect(document.activeElement).toBe(field);
});

it("REL-2529: no number is given where only those next to the shown version are known", () => {
  const many = Array.from({ length: 101 }, (_, n) => `m${n}`);
  draw("m9", many.slice(0, 100));
  expect(at().textContent).toContain("10/100");
  draw("m9", many);
  expect(at().textContent).toContain("of more than 100");
});
