import { expect, it } from "vitest";
import { fromBase64url, toBase64url } from "../../src/pages/push";

it("reads and writes keys as Web Push does, without padding", () => {
  const bytes = Uint8Array.from([251, 255, 190, 0]);
  expect(toBase64url(bytes.buffer)).toBe("-_--AA");
  expect([...fromBase64url("-_--AA")]).toEqual([...bytes]);
  expect(toBase64url(null)).toBe("");
});
