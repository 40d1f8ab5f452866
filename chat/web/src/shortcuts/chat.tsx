import { effect, signal } from "@preact/signals";
import { boot, go, homePath } from "../app";
import { chooser, setNextTemporary } from "../chat/choice";
import t from "../texts/shortcuts";
import { Dialog } from "../ui/dialog";
import { keepEarly, takeEarly } from "./early";
import { ShortcutGroups } from "./groups";
import { CHAT_KEYS, isPressed, type Keys } from "./list";

export const isHelpOpen = signal(false);
export const isSearchOpen = signal(false);

export function closeSearch(): void {
  isSearchOpen.value = false;
}

export function openHelp(): void {
  isHelpOpen.value = true;
}

export function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>("#composer-text")?.focus();
}

export function newChat(isTemporary = false): void {
  setNextTemporary(isTemporary);
  go(homePath);
  requestAnimationFrame(focusComposer);
}

const CHAT: readonly [Keys, () => void][] = [
  [CHAT_KEYS.newChat, () => newChat()],
  [CHAT_KEYS.temporaryChat, () => newChat(true)],
  [
    CHAT_KEYS.search,
    () => {
      isSearchOpen.value = !isSearchOpen.value;
    },
  ],
  [
    CHAT_KEYS.choose,
    () => {
      chooser.value = chooser.value ? null : "all";
    },
  ],
  [CHAT_KEYS.composer, focusComposer],
  [
    CHAT_KEYS.list,
    () => {
      isHelpOpen.value = !isHelpOpen.value;
    },
  ],
];

export function installShortcuts(): void {
  effect(() => {
    if (isSearchOpen.value) keepEarly(closeSearch);
    else takeEarly();
  });
  addEventListener("keydown", (event) => {
    const found = CHAT.find(([keys]) => isPressed(keys, event));
    if (!found) return;
    found[1]();
    event.preventDefault();
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
        <ShortcutGroups places={["chat"]} />
      </div>
    </Dialog>
  );
}
