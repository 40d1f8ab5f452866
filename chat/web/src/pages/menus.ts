/** Menus of the pages that Django draws: placed beside their buttons, walked by keys, closed by a choice. */

import { closestTo } from "../ui/closest";
import { placePopover, walkMenu } from "../ui/place";

function menuOf(event: Event): HTMLElement | null {
  return event.target instanceof HTMLElement && event.target.matches(".menu-pop[popover]")
    ? event.target
    : null;
}

document.addEventListener(
  "toggle",
  (event) => {
    const menu = menuOf(event);
    if (!menu || (event as ToggleEvent).newState !== "open") return;
    const anchor = document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`);
    if (anchor) placePopover(menu, anchor, menu.dataset.align === "end" ? "end" : "start");
    const here = menu.querySelector<HTMLElement>('[aria-current="page"]');
    const first = here ?? menu.querySelector<HTMLElement>("a[href], button");
    first?.focus({ preventScroll: !here });
  },
  true,
);

document.addEventListener("keydown", (event) => {
  const menu = closestTo(event, ".menu-pop:popover-open");
  if (menu) walkMenu(event, menu);
});

document.addEventListener("click", (event) => {
  const item = closestTo(event, ".menu-pop:popover-open .menu-item");
  item?.closest<HTMLElement>(".menu-pop")?.hidePopover();
});
