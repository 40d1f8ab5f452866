import { describe, expect, it } from "vitest";
import { bodyOf, changedMeanwhile, typedOf } from "../../src/buds/checks/values";
import checks from "../../src/texts/checks";
import type { BudCheck } from "../../src/wire";

const CHECK: BudCheck = {
  id: "1",
  bud_id: "2",
  version: 1,
  question: "When?",
  calls: [{ tool: "clock.now", arguments: { zone: "UTC" } }],
  contains: ["noon", "UTC"],
  excludes: [],
  criterion: "",
  recordings: [{ tool: "notes.put", arguments: {}, result: "kept", is_error: false }],
};

describe("checks of a bud", () => {
  it("come out of the form as they went in", () => {
    const { id, bud_id, version, ...values } = CHECK;
    expect(bodyOf(typedOf(CHECK))).toEqual({ body: values });
  });

  it("tell arguments that are no object at their field", () => {
    const typed = typedOf(CHECK);
    for (const text of ["{", "[1]", "null", '"x"']) {
      const calls = [{ tool: "a", arguments: text }];
      expect(bodyOf({ ...typed, calls })).toEqual({ problems: { "calls.0": [checks.notJson] } });
    }
  });

  it("tell what somebody else changed, at its field", () => {
    const theirs = { ...CHECK, version: 2, contains: ["noon", "CET"], calls: [] };
    expect(changedMeanwhile(CHECK, theirs)).toEqual({
      "": [checks.changedMeanwhile],
      calls: ["Now empty."],
      contains: ["Now: noon, CET"],
    });
    const recordings = [{ tool: "notes.put", arguments: { a: 1 }, result: "lost", is_error: false }];
    expect(changedMeanwhile(CHECK, { ...CHECK, recordings }).recordings).toEqual([
      'Now: notes.put {\n  "a": 1\n} → lost',
    ]);
  });

  it("leave out empty lines", () => {
    const read = bodyOf({ ...typedOf(null), question: "q", contains: " a \n\n b\n" });
    expect(read).toMatchObject({ body: { contains: ["a", "b"] } });
  });

  it("say in a line what they expect", () => {
    expect(checks.expects(CHECK)).toBe(
      "calls clock.now · contains “noon” · contains “UTC” · 1 recorded result",
    );
  });
});
