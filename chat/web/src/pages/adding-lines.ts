/** Fields that complete names, and add each as a line to a larger field. A large field cannot complete them itself. */

/** Add a name to the lines of a field. What stood for everything makes room for it. */
function add(to: HTMLTextAreaElement, name: string): void {
  const lines = to.value.split("\n").filter((line) => line.trim() && line.trim() !== "*");
  if (!lines.includes(name)) lines.push(name);
  to.value = lines.join("\n");
  to.dispatchEvent(new Event("input", { bubbles: true }));
}

function take(from: HTMLInputElement, to: HTMLTextAreaElement): void {
  const name = from.value.trim();
  from.value = "";
  if (name) add(to, name);
}

/** Show these fields, which do nothing without this program. */
export function startAddingLines(): void {
  for (const box of document.querySelectorAll<HTMLElement>("[data-adds-to]")) {
    const from = box.querySelector("input");
    const to = document.getElementById(box.dataset.addsTo ?? "");
    if (!from || !(to instanceof HTMLTextAreaElement)) continue;
    box.hidden = false;
    from.addEventListener("input", (event) => {
      // Chosen from the list. What is typed may still go on: some names begin like others.
      if (!(event instanceof InputEvent) || event.inputType === "insertReplacementText") take(from, to);
    });
    from.addEventListener("change", () => take(from, to));
    from.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !from.value.trim()) return;
      event.preventDefault();
      take(from, to);
    });
  }
}
