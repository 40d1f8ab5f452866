/** Whether the list of chats is there: on a narrow screen it lies over the page, on a wide one it can be hidden. */
import { effect, signal } from "@preact/signals";
import { isSidebarOpen } from "../app/place";

const KEY = "trellis.sidebar";
const NARROW = "(max-width: 52rem)"; // as in styles/sidebar.css

function isKeptHidden(): boolean {
  try {
    return localStorage.getItem(KEY) === "hidden";
  } catch {
    return false;
  }
}

export const isSidebarHidden = signal(isKeptHidden());

effect(() => {
  try {
    if (isSidebarHidden.value) localStorage.setItem(KEY, "hidden");
    else localStorage.removeItem(KEY);
  } catch {
    // Without storage it lasts as long as the page.
  }
});

/** Hide or show it on a wide screen. The focus goes on to the button that undoes it, if it would be lost. */
function setHidden(isHidden: boolean): void {
  const wouldBeLost = document.activeElement?.closest("#sidebar, [aria-controls=sidebar]");
  isSidebarHidden.value = isHidden;
  if (!wouldBeLost) return;
  const next = isHidden ? "[aria-controls=sidebar]" : ".sidebar-top > .btn";
  requestAnimationFrame(() => document.querySelector<HTMLElement>(next)?.focus());
}

export function showSidebar(): void {
  if (matchMedia(NARROW).matches) isSidebarOpen.value = true;
  else setHidden(false);
}

export function toggleSidebar(): void {
  if (matchMedia(NARROW).matches) isSidebarOpen.value = !isSidebarOpen.value;
  else setHidden(!isSidebarHidden.value);
}
