import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { at, openPage, PLACE } from "../page";

openPage({ body: PLACE });
const { Dialog } = await import("../../src/ui/dialog");

it("REL-1907: closes where the browser's back button leads elsewhere, and hears of it no more then", () => {
  const leave = vi.fn();
  act(() =>
    render(
      <Dialog title="Rename chat" onClose={leave}>
        <input />
      </Dialog>,
      at(),
    ),
  );
  dispatchEvent(new PopStateEvent("popstate"));
  expect(leave).toHaveBeenCalledOnce();
  act(() => render(null, at()));
  dispatchEvent(new PopStateEvent("popstate"));
  expect(leave).toHaveBeenCalledOnce();
});
