import { hearOfPlace } from "./place";

/** Whether somebody has pressed a key or anything else since the page came to where it is. */
let hasGoneOn = false;
let wasKey = false;
hearOfPlace((_next, _previous, isChosen) => {
  // A chat that begins meanwhile takes nothing from somebody who is in the list, a menu or a dialog.
  hasGoneOn = !isChosen && document.activeElement?.closest("#sidebar, dialog, .menu-pop") != null;
});
for (const press of ["keydown", "pointerdown"])
  document.addEventListener(
    press,
    () => {
      hasGoneOn = true;
      wasKey = press === "keydown";
    },
    { capture: true },
  );

/** Whether what happens now was asked for with a key. */
export const isByKeys = (): boolean => wasKey;

const isNowhere = (): boolean => !document.activeElement || document.activeElement === document.body;

/** May the message field of a chat take the focus: its code may come when somebody has gone on to something else. */
export const mayBeginTyping = (): boolean => !hasGoneOn || isNowhere();

/** May a card that appears take the focus: not from somebody who is writing. */
export function isFocusFree(): boolean {
  if (isNowhere()) return true;
  const active = document.activeElement as HTMLElement;
  if (active.id === "composer-text") return (active as HTMLTextAreaElement).value === "";
  return (
    active.closest(".approval, dialog, .menu-pop") === null && !active.matches("input, textarea, select")
  );
}
