/**
 * Opens the folded part of a form in which the browser finds a value that does not fit.
 *
 * A browser cannot point at a field that is folded away. It then sends nothing and says nothing.
 */
export function startUnfolding(): void {
  const open = (event: Event) => {
    let part = (event.target as Element).closest("details");
    for (; part; part = part.parentElement?.closest("details") ?? null) part.open = true;
  };
  // The event does not bubble.
  document.addEventListener("invalid", open, true);
}
