/**
 * On a page that asks before something is done, Escape leads back and changes nothing; unless a menu lies over it.
 *
 * The focus begins on the way back. Browsers leave `autofocus` out where they were still busy with the page before.
 */
export function startEscapingBack(leave: (url: string) => void = (url) => location.assign(url)): void {
  const back = document.querySelector<HTMLElement>("[data-back]")?.dataset.back;
  if (!back) return;
  if (document.activeElement === document.body)
    document.querySelector<HTMLElement>("[data-back] [autofocus]")?.focus();
  document.addEventListener("keydown", (event) => {
    const isTaken = event.defaultPrevented || document.querySelector(":popover-open, dialog[open]") !== null;
    if (event.key === "Escape" && !isTaken) leave(back);
  });
}
