/** Pages that answer a form with a secret. Reloading one would send the form again, and make a second of what it made. */
export function startShownOnce(root: ParentNode): void {
  // A page whose entry of the history was replaced is fetched when it is reloaded, and nothing is sent.
  if (root.querySelector("[data-shown-once]")) history.replaceState(history.state, "");
}
