import { describe, expect, it } from "vitest";
import { canOpen, markHost, sampledMessages } from "../../../src/chat/calls/elicitation";
import type { JsonObject } from "../../../src/wire";

describe("a server's link", () => {
  it("SEC-69: has its host marked, also where the host's name stands elsewhere too", () => {
    expect(markHost("https://bank.example/bank.example", "bank.example")).toEqual([
      "https://",
      "bank.example",
      "/bank.example",
    ]);
  });
  it("SEC-69: opens for https alone", () => {
    expect(canOpen("https://a.example/x")).toBe(true);
    for (const bad of ["http://a.example", "javascript:alert(1)", "https://me@a.example", "nonsense"]) {
      expect(canOpen(bad), bad).toBe(false);
    }
  });
});

it("shows what a server wants to ask the model as text by role", () => {
  const params: JsonObject = {
    messages: [
      { role: "user", content: { type: "text", text: "Sum this up" } },
      {
        role: "assistant",
        content: [
          { type: "text", text: "ok" },
          { type: "image", data: "x" },
        ],
      },
    ],
  };
  expect(sampledMessages(params)).toEqual([
    { role: "user", text: "Sum this up" },
    { role: "assistant", text: "ok\n[image]" },
  ]);
});
