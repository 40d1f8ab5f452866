import { expect, it } from "vitest";
import { questionOf } from "../../src/pages/question-of";

it("REL-3341: a question names what was typed in its form, as text", () => {
  const form = document.createElement("form");
  form.dataset.confirm = "Erase what {email} did? {email}{nothing}";
  const field = document.createElement("input");
  field.name = "email";
  field.value = " $&<b>ada@example.org ";
  form.append(field);
  expect(questionOf(form)).toBe("Erase what $&<b>ada@example.org did? $&<b>ada@example.org");
});
