/** A question before something is done, on pages and in the chat alike. */
import { onOwnEntry, openLayer } from "../browser/layers";
import common from "../texts/common";

/** Ask before something is done that cannot be taken back. `otherwise` runs where the person does not want it. */
export function askFirst(
  question: string,
  label: string,
  run: () => void,
  otherwise: () => void = () => {},
): void {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  const body = document.createElement("form");
  body.method = "dialog";
  body.className = "grid gap-4 p-5";
  const text = document.createElement("p");
  text.id = "confirm-text";
  text.textContent = question;
  dialog.setAttribute("aria-labelledby", text.id);
  const buttons = document.createElement("div");
  buttons.className = "flex justify-end gap-2";
  const cancel = document.createElement("button");
  cancel.className = "btn btn-outline-quiet";
  cancel.value = "no";
  cancel.textContent = common.cancel;
  cancel.autofocus = true;
  const yes = document.createElement("button");
  yes.className = "btn btn-error";
  yes.value = "yes";
  yes.textContent = label;
  buttons.append(cancel, yes);
  body.append(text, buttons);
  dialog.append(body);
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
    // A page that is left while the browser is still on its way back may stay where it is.
    if (dialog.returnValue === "yes") onOwnEntry(run);
    else otherwise();
  });
  dialog.showModal();
  const closed = openLayer(() => dialog.close());
}
