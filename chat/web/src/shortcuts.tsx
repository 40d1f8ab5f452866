/** Entry of the page of shortcuts. */
import { render } from "preact";
import { createApi } from "./net/api";
import { ShortcutEditor } from "./shortcuts/editor";
import type { Place } from "./shortcuts/list";
import type { OwnKeys } from "./shortcuts/own";
import { notify } from "./site";
import common from "./texts/common";
import t from "./texts/shortcuts";

const at = document.getElementById("shortcuts");
if (at) {
  const { places = "", api = "", csrf = "", workspace = "" } = at.dataset;
  const { saveShortcuts } = createApi(api, csrf, workspace);
  const save = async (choice: OwnKeys | null) => {
    try {
      await saveShortcuts(choice);
      notify(t.saved, "ok");
      return true;
    } catch (error) {
      notify(error instanceof Error ? error.message : common.failed);
      return false;
    }
  };
  render(<ShortcutEditor places={places.split(" ") as Place[]} save={save} />, at);
}
