/** Keys that are pressed before the search field has the focus: a browser draws a dialog a moment after it was asked to. */

interface Early {
  text: string;
  /** Whether Enter came after it. */
  chooses: boolean;
}

let stop: (() => Early) | undefined;

/** Keep what is typed from now on, so that nothing else gets it. Escape ends the keeping and calls `leave`. */
export function keepEarly(leave: () => void): void {
  stop?.();
  const early: Early = { text: "", chooses: false };
  const keep = (event: KeyboardEvent) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1) early.text += event.key;
    else if (event.key === "Backspace") early.text = [...early.text].slice(0, -1).join("");
    else if (event.key === "Enter") early.chooses = true;
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  addEventListener("keydown", keep, true);
  stop = () => {
    removeEventListener("keydown", keep, true);
    stop = undefined;
    return early;
  };
}

/** End the keeping, and give what was kept. */
export function takeEarly(): Early {
  return stop?.() ?? { text: "", chooses: false };
}
