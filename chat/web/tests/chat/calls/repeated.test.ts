import { describe, expect, it } from "vitest";
import { saysTheSame } from "../../../src/chat/calls/repeated";

describe("A result", () => {
  it("is repeated where its text is its data, in any order or under the name result", () => {
    const text = (value: string) => [{ type: "text", text: value }];
    expect(saysTheSame(text('{"b": 2, "a": 1}'), { a: 1, b: 2 })).toBe(true);
    expect(saysTheSame(text("[1, 2]"), { result: [1, 2] })).toBe(true);
    expect(saysTheSame(text("four"), { result: "four" })).toBe(true);
    expect(saysTheSame(text('{"a": 1}'), { a: 1, b: 2 })).toBe(false);
    expect(saysTheSame(text("four"), undefined)).toBe(false);
  });
});
