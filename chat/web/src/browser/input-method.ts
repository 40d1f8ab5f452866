/**
 * Keys that an input method takes, for Japanese, Chinese, Korean and more, do nothing on the page.
 *
 * With Enter, Escape and the arrows people choose among what it offers; the page would send, close and walk.
 */

/** What keys are called that write a letter, or a part of one. They go on: that somebody writes is news to the page. */
const WRITING = new Set(["Process", "Unidentified", "Dead"]);

/** Safari ends the writing before the key that ended it. Of that key only its old code says whose it was. */
const TAKEN = 229;

addEventListener(
  "keydown",
  (event) => {
    const isWriting = event.key.length === 1 || WRITING.has(event.key);
    if ((event.isComposing || event.keyCode === TAKEN) && !isWriting) event.stopImmediatePropagation();
  },
  { capture: true },
);
