import { effect } from "@preact/signals";
import { boot } from "../app/boot";
import { place, printPath } from "../app/place";
import { keepEarly, takeEarly } from "../shortcuts/early";
import { ShortcutGroups } from "../shortcuts/groups";
import type { ShortcutName } from "../shortcuts/list";
import { ownKeys, pressed } from "../shortcuts/own";
import { toggleSidebar } from "../sidebar/hiding";
import { focusComposer, isHelpOpen, isSearchOpen, newChat } from "../sidebar/opening";
import t from "../texts/shortcuts";
import { Dialog } from "../ui/dialog";
import { chooser } from "./composer/choice";
import { copyLastAnswer, copyLastCode } from "./messages/copying";

export function closeSearch(): void {
  isSearchOpen.value = false;
}

/** The whole chat, where the browser would print what is in the window; false: none is open, so the browser does. */
function printChat(): boolean {
  if (!place.value || boot.is_kept) return false;
  location.assign(printPath(place.value));
  return true;
}

/** What the keys do; `false`: nothing, so they are the browser's. */
const DOES: Readonly<Record<ShortcutName, () => unknown>> = {
  newChat: () => newChat(),
  temporaryChat: () => newChat(true),
  search: () => {
    isSearchOpen.value = !isSearchOpen.value;
  },
  choose: () => {
    chooser.value = chooser.value ? null : "all";
  },
  composer: focusComposer,
  copyAnswer: () => void copyLastAnswer(),
  copyCode: () => void copyLastCode(),
  print: printChat,
  sidebar: toggleSidebar,
  settings: () => location.assign(boot.urls.settings),
  list: () => {
    isHelpOpen.value = !isHelpOpen.value;
  },
};

export function installShortcuts(): void {
  effect(() => {
    if (isSearchOpen.value) keepEarly(closeSearch);
    else takeEarly();
  });
  addEventListener("keydown", (event) => {
    const name = pressed(event);
    if (!name) return;
    if (DOES[name]() !== false) event.preventDefault();
  });
}

export function HelpDialog() {
  return (
    <Dialog
      title={t.title}
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <div class="grid gap-5 p-5 pt-3">
        {/* First, since the focus goes to it: below the list, it would show the list from its end. */}
        <a class="link-brand justify-self-start text-sm" href={boot.urls.shortcuts}>
          {t.all}
        </a>
        {!ownKeys().is_on && <p class="notice">{t.isOff}</p>}
        <ShortcutGroups places={["chat"]} />
      </div>
    </Dialog>
  );
}
