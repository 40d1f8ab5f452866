/** Fields for an e-mail address: marks that nobody typed come along from what it is copied from. Browsers refuse those. */

// As `workspaces/words/names.py` has them.
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

export function startTypedAddresses(): void {
  document.addEventListener("input", ({ target }) => {
    if (!(target instanceof HTMLInputElement) || target.type !== "email") return;
    const seen = target.value.replace(UNSEEN, "").trim();
    if (seen !== target.value) target.value = seen;
  });
}
