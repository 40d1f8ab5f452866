/** Entry of the page of shortcuts. */
import "./site";
import { render } from "preact";
import { ShortcutGroups } from "./shortcuts/groups";
import type { Place } from "./shortcuts/list";

const at = document.getElementById("shortcuts");
if (at) {
  const places = (at.dataset.places ?? "").split(" ") as Place[];
  render(<ShortcutGroups places={places} />, at);
}
