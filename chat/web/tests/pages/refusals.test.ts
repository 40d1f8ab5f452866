import { expect, test } from "vitest";
import { refusalOf } from "../../src/pages/refusals";

const answered = (text: string, type: string) =>
  new CustomEvent("htmx:response:error", {
    detail: { ctx: { text, response: { headers: new Headers({ "Content-Type": type }) } } },
  });

test("REL-1265: a part of a page that was refused tells why, in the server's words", () => {
  const reason = "The definition has changed again. Review it once more.";
  expect(refusalOf(answered(reason, "text/plain; charset=utf-8"))).toBe(reason);
});

test("REL-1265: error pages and answers without words are told in a sentence of the page's own", () => {
  const plain = "That did not work. Reload the page and try again.";
  expect(refusalOf(answered("<!doctype html>", "text/html"))).toBe(plain);
  expect(refusalOf(answered(" ", "text/plain"))).toBe(plain);
  expect(refusalOf(new CustomEvent("htmx:response:error", { detail: {} }))).toBe(plain);
});
