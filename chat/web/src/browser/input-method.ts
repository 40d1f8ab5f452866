/**
 * Keys that an input method takes, for Japanese, Chinese, Korean and more, do nothing on the page.
 *
 * With Enter, Escape and the arrows people choose among what it offers; the page would send, close and walk.
 */

/** What keys are called that write a letter, or a part of one. They go on: that somebody writes is news to the page. */
const WRITING = /^(.|Process|Unidentified|Dead)$/u;

/** Safari ends the writing before the key that ended it. Of that key only its old code says whose it was. */
const TAKEN = 229;

addEventListener(
  "keydown",
  (event) => {
    if ((event.isComposing || event.keyCode === TAKEN) && !WRITING.test(event.key))
      event.stopImmediatePropagation();
  },
  { capture: true },
);
