/** Put a popover beside the button that opened it, inside the window. */
export function placePopover(popover: HTMLElement, anchor: Element, align: "start" | "end" = "start"): void {
  const gap = 6;
  const box = anchor.getBoundingClientRect();
  const { width, height } = popover.getBoundingClientRect();
  const wanted = align === "end" ? box.right - width : box.left;
  const left = Math.max(8, Math.min(wanted, innerWidth - width - 8));
  const below = box.bottom + gap;
  const top = below + height > innerHeight - 8 && box.top - gap - height > 8 ? box.top - gap - height : below;
  popover.style.left = `${left}px`;
  popover.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
}

/** Arrow keys, Home and End walk through the items of a menu. */
export function walkMenu(event: KeyboardEvent, menu: HTMLElement): void {
  // In a field these keys are the field's.
  if (event.target instanceof HTMLInputElement) return;
  const items = [...menu.querySelectorAll<HTMLElement>("a[href], button:not(:disabled)")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined || items.length === 0) return;
  event.preventDefault();
  items.at(to >= items.length ? 0 : to)?.focus();
}
