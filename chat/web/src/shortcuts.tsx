import { signal } from "@preact/signals";
import { go, homePath } from "./app";
import { chooser } from "./chat/choice";
import choosing from "./texts/choosing";
import common from "./texts/common";
import t from "./texts/shell";
import { Dialog } from "./ui/dialog";

export const isHelpOpen = signal(false);
export const isSearchOpen = signal(false);

export function openHelp(): void {
  isHelpOpen.value = true;
}

export function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>("#composer-text")?.focus();
}

export function newChat(): void {
  go(homePath);
  requestAnimationFrame(focusComposer);
}

const isMac = /mac|iphone|ipad/i.test(navigator.platform);
const MOD = isMac ? "⌘" : t.keys.ctrl;

const SHORTCUTS: [string, string[]][] = [
  [common.newChat, [MOD, t.keys.shift, "O"]],
  [t.shortcutTo.search, [MOD, "K"]],
  [choosing.title, [MOD, t.keys.shift, "M"]],
  [t.shortcutTo.composer, [t.keys.shift, t.keys.escape]],
  [t.shortcutTo.help, [MOD, "/"]],
  [t.shortcutTo.send, [t.keys.enter]],
  [t.shortcutTo.newLine, [t.keys.shift, t.keys.enter]],
  [t.shortcutTo.allow, [t.keys.enter]],
];

export function installShortcuts(): void {
  addEventListener("keydown", (event) => {
    const isMod = event.metaKey || event.ctrlKey;
    const key = event.key.toLowerCase();
    if (isMod && event.shiftKey && key === "o") newChat();
    else if (isMod && event.shiftKey && key === "m") chooser.value = chooser.value ? null : "all";
    else if (isMod && !event.shiftKey && key === "k") isSearchOpen.value = !isSearchOpen.value;
    else if (isMod && key === "/") isHelpOpen.value = !isHelpOpen.value;
    else if (event.shiftKey && event.key === "Escape") focusComposer();
    else return;
    event.preventDefault();
  });
}

export function HelpDialog() {
  return (
    <Dialog
      title={t.shortcuts}
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <dl class="grid gap-2 p-5 pt-3">
        {SHORTCUTS.map(([what, keys]) => (
          <div key={what} class="flex items-center justify-between gap-4">
            <dt>{what}</dt>
            <dd class="flex gap-1">
              {keys.map((key) => (
                <kbd key={key} class="kbd-key">
                  {key}
                </kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
