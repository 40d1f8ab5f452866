/** Whether the list of chats is there: on a narrow screen it lies over the page, on a wide one it can be hidden. */
import { effect, signal } from "@preact/signals";
import { isSidebarOpen } from "../app";

const KEY = "trellis.sidebar";
const NARROW = "(max-width: 52rem)"; // as in styles/chat.css

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

export function showSidebar(): void {
  if (matchMedia(NARROW).matches) isSidebarOpen.value = true;
  else isSidebarHidden.value = false;
}

export function toggleSidebar(): void {
  if (matchMedia(NARROW).matches) isSidebarOpen.value = !isSidebarOpen.value;
  else isSidebarHidden.value = !isSidebarHidden.value;
}
