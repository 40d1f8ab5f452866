import type { ComponentChildren } from "preact";
import { boot } from "../app/boot";
import { isSidebarOpen } from "../app/place";
import { isSidebarHidden, showSidebar } from "../sidebar/hiding";
import home from "../texts/home";
import shell from "../texts/shell";
import { Icon } from "../ui/icon";
import { WaitingButton } from "../waiting/button";

export function DemoLabel() {
  return (
    <span class="tag" data-tone="warn" title={home.demoTitle}>
      <span class="max-sm:hidden">{home.demoModel}</span>
      <span class="sm:hidden">{home.demoShort}</span>
    </span>
  );
}

/** What becomes of a temporary chat, and what the person can do about it. */
export function TemporaryLine({ children }: { children?: ComponentChildren }) {
  return (
    <p class="temporary-line">
      <Icon name="temporary" />
      <span>
        <strong>{shell.temporary}</strong> · {shell.temporaryText(boot.temporary_hours)} {children}
      </span>
    </p>
  );
}

export function Header({ children }: { children: ComponentChildren }) {
  return (
    <header class="chat-header">
      <button
        type="button"
        class={`btn btn-sm btn-square btn-quiet ${isSidebarHidden.value ? "" : "min-[52.01rem]:hidden"}`}
        aria-label={shell.openSidebar}
        aria-expanded={isSidebarOpen.value}
        aria-controls="sidebar"
        onClick={showSidebar}
      >
        <Icon name="menu" />
      </button>
      {children}
      <WaitingButton />
    </header>
  );
}
