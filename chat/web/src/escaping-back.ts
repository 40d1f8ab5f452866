/** On a page that asks before something is done, Escape leads back and changes nothing; unless a menu lies over it. */
export function startEscapingBack(leave: (url: string) => void = (url) => location.assign(url)): void {
  const back = document.querySelector<HTMLElement>("[data-back]")?.dataset.back;
  if (!back) return;
  document.addEventListener("keydown", (event) => {
    const isTaken = event.defaultPrevented || document.querySelector(":popover-open, dialog[open]") !== null;
    if (event.key === "Escape" && !event.isComposing && !isTaken) leave(back);
  });
}
