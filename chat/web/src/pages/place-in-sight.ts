/** Beside the admin's pages, have the list of them begin where the open one is in sight: it is longer than the screen. */
export function startPlaceInSight(): void {
  const here = document.querySelector("#nav-sidebar-apps [aria-current]");
  const list = document.getElementById("nav-sidebar-apps");
  if (!here || !list) return;
  const below = here.getBoundingClientRect().bottom - list.getBoundingClientRect().bottom;
  // With some of what comes after it.
  if (below > 0) list.scrollTop += below + list.clientHeight / 4;
}
