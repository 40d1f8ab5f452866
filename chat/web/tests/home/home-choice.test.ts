import { beforeEach, expect, it } from "vitest";
import { type HomeChoice, noteAsked, notedAsked, notedHome, noteHome } from "../../src/browser/last-chat";

const choice: HomeChoice = {
  bud: "b1",
  model: { provider_id: null, name: "large" },
  overrides: {
    additional_servers: [],
    disabled_servers: [],
    disabled_tools: ["s1.delete_note"],
    tool_choice: "none",
  },
  is_temporary: true,
};

beforeEach(() => sessionStorage.clear());

it("REL-750: remembers bud, model and tools of the next chat for the same person and workspace only", () => {
  noteHome("ada.acme", choice);
  expect(notedHome("ada.acme")).toMatchObject(choice);
  expect(notedHome("ben.acme")).toBeNull();
  expect(notedHome("ada.other")).toBeNull();
});

it("REL-750: begins anew where nothing, or nothing readable, is kept", () => {
  expect(notedHome("ada.acme")).toBeNull();
  sessionStorage.setItem("trellis.home", "{");
  expect(notedHome("ada.acme")).toBeNull();
});

it("REL-1357: remembers whom the next message of a draft asks, for the same person only", () => {
  noteAsked("ada.acme", "bud", { home: "b1" });
  expect(notedAsked("ada.acme", "bud")).toEqual({ home: "b1" });
  expect(notedAsked("ada.acme", "models")).toEqual({});
  expect(notedAsked("ben.acme", "bud")).toEqual({});
  sessionStorage.setItem("trellis.asked.bud", "{");
  expect(notedAsked("ada.acme", "bud")).toEqual({});
});
