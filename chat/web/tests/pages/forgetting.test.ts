// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from "vitest";
import { countUnsent, forgetAtSignOut, forgetPeople, personal } from "../../src/pages/forgetting";

const ANN = "0197d3a0-0000-7000-8000-000000000001";
const BEN = "0197d3a0-0000-7000-8000-000000000002";

beforeEach(() => {
  localStorage.clear();
  for (const person of [ANN, BEN]) {
    localStorage.setItem(`trellis.draft.${person}.demo.home`, "half a thought");
    localStorage.setItem(`trellis.draft.${person}.demo.home.at`, "1");
    localStorage.setItem(`trellis.unsent.${person}.demo`, '[{"client_id":"a"},{"client_id":"b"}]');
    localStorage.setItem(`trellis.hosts.${person}`, '["example.org"]');
    localStorage.setItem(`trellis.compared.${person}.demo`, "[]");
  }
  localStorage.setItem("trellis.theme", "dark");
});

describe("what a browser keeps of people", () => {
  it("REL-576: goes when they sign out, and the browser's own choices stay", () => {
    forgetPeople(localStorage);
    expect(Object.keys(localStorage)).toEqual(["trellis.theme"]);
  });

  it("REL-576: of others goes when somebody signs in", () => {
    forgetPeople(localStorage, ANN);
    const left = Object.keys(localStorage);
    expect(left.filter((key) => key.includes(BEN))).toEqual([]);
    expect(left.filter((key) => key.includes(ANN))).toHaveLength(5);
  });

  it("SEC-415: stays for its person after a session that ended, and goes when another one signs in beside it", async () => {
    vi.resetModules();
    const { forgetOthers, hearOfAnother, isAnothers, personal } = await import("../../src/pages/forgetting");
    forgetOthers(ANN);
    forgetOthers(ANN);
    const mine = () => Object.keys(localStorage).filter((key) => key.includes(ANN));
    expect(mine()).toHaveLength(5);
    expect(isAnothers(ANN)).toBe(false);
    const left = vi.fn();
    hearOfAnother(ANN, left);
    forgetOthers(BEN); // as the other tab does
    dispatchEvent(new StorageEvent("storage", { key: "trellis.theme", newValue: "dark" }));
    expect(left).not.toHaveBeenCalled();
    dispatchEvent(new StorageEvent("storage", { key: "trellis.person", newValue: BEN }));
    expect(left).toHaveBeenCalledOnce();
    expect(isAnothers(ANN)).toBe(true);
    personal.setItem(`trellis.draft.${ANN}.demo.home`, "late");
    expect(mine()).toEqual([]);
  });

  it("is counted where it would be lost", () => {
    localStorage.setItem(`trellis.unsent.${ANN}.other`, "{");
    expect(countUnsent(localStorage)).toBe(4);
  });

  it("REL-576: does not come back with an answer that is late", () => {
    personal.setItem(`trellis.draft.${ANN}.demo.home`, "kept");
    expect(localStorage.getItem(`trellis.draft.${ANN}.demo.home`)).toBe("kept");
    for (const key of Object.keys(localStorage)) if (key.includes("unsent")) localStorage.removeItem(key);
    forgetAtSignOut();
    const form = document.createElement("form");
    form.action = "/accounts/logout/";
    form.addEventListener("submit", (event) => event.preventDefault());
    document.body.append(form);
    form.requestSubmit();
    personal.setItem(`trellis.draft.${ANN}.demo.home`, "late");
    expect(Object.keys(localStorage)).toEqual(["trellis.theme"]);
  });
});
