import { expect, it, vi } from "vitest";
import { startTester } from "../../src/servers/tester";

it("REL-2526: looks for nothing without a name where a tool has not been tried", async () => {
  document.body.innerHTML = `<script type="application/json" id="tool-schema">{}</script>
    <div id="tester-form"></div><textarea id="tester-arguments"></textarea>
    <div id="tester-json"></div><div id="tester-mode"></div>`;
  await startTester();
  const found = vi.spyOn(document, "getElementById");
  document.dispatchEvent(new Event("htmx:after:swap"));
  expect(found).not.toHaveBeenCalledWith("");
});
