import { afterEach, expect, it } from "vitest";
import { startTypedAddresses } from "../../src/pages/typed-addresses";

startTypedAddresses();

afterEach(() => document.body.replaceChildren());

function typedInto(type: string, text: string): string {
  const field = document.createElement("input");
  field.type = type;
  document.body.append(field);
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  return field.value;
}

it("REL-2151: marks that nobody typed are gone from an address before the browser refuses it", () => {
  expect(typedInto("email", "\u200bada@example.org\ufeff")).toBe("ada@example.org");
  expect(typedInto("email", "\u00a0ada@exam\u00adple.org\u00a0")).toBe("ada@example.org");
  expect(typedInto("email", "ada@example.org")).toBe("ada@example.org");
});

it("REL-2151: other fields keep what was typed", () => {
  expect(typedInto("text", "\u200bada ")).toBe("\u200bada ");
});
