import type { ComponentChildren } from "preact";
import { isSidebarOpen } from "../app";
import { Icon } from "../ui/icon";

export function DemoLabel() {
  return (
    <span
      class="tag"
      data-tone="warn"
      title="A built-in stand-in that follows a script, so that Trellis can be tried offline"
    >
      demo model, not an AI
    </span>
  );
}

export function Header({ children }: { children: ComponentChildren }) {
  return (
    <header class="chat-header">
      <button
        type="button"
        class="btn btn-sm btn-square btn-quiet min-[52.01rem]:hidden"
        aria-label="Open the sidebar"
        aria-expanded={isSidebarOpen.value}
        aria-controls="sidebar"
        onClick={() => {
          isSidebarOpen.value = true;
        }}
      >
        <Icon name="menu" />
      </button>
      {children}
    </header>
  );
}
