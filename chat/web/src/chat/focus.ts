/** May a card that appears take the focus: not from somebody who is writing. */
export function isFocusFree(): boolean {
  const active = document.activeElement;
  if (!active || active === document.body) return true;
  if (active.id === "composer-text") return (active as HTMLTextAreaElement).value === "";
  return (
    active.closest(".approval, dialog, .menu-pop") === null && !active.matches("input, textarea, select")
  );
}
