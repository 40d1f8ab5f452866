/**
 * Keys that an input method takes, for Japanese, Chinese, Korean and more, do nothing on the page.
 *
 * With Enter, Escape and the arrows people choose among what it offers; the page would send, close and walk.
 */

/** Safari ends the writing before the key that ended it. Of that key only its old code says whose it was. */
const TAKEN = 229;

addEventListener(
  "keydown",
  (event) => {
    // Letters go on: that somebody writes is news to parts of the page.
    if ((event.isComposing || event.keyCode === TAKEN) && event.key.length > 1)
      event.stopImmediatePropagation();
  },
  { capture: true },
);
