import { expect, it } from "vitest";
import { startLightPaper } from "../../src/pages/light-paper";

it("REL-2887: a page of the admin is printed in light colours, and is as before afterwards", () => {
  const page = document.documentElement;
  startLightPaper();
  for (const theme of ["dark", "light", ""]) {
    page.className = theme;
    dispatchEvent(new Event("beforeprint"));
    expect(page.className).toBe(theme && "light");
    dispatchEvent(new Event("afterprint"));
    expect(page.className).toBe(theme);
  }
});
