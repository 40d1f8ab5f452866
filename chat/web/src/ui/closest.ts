/** The element of a kind that an event happened in; none for an event that a script sent to the document itself. */
export function closestTo<E extends HTMLElement>(event: Event, selector: string): E | null {
  return event.target instanceof Element ? event.target.closest<E>(selector) : null;
}
