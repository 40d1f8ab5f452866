import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { openLayer } from "../browser/layers";
import { Icon, type IconName } from "./icon";
import { placePopover, walkMenu } from "./place";
import { isTouch } from "./refocus";

interface MenuProps {
  label: string;
  buttonClass: string;
  button: ComponentChildren;
  align?: "start" | "end";
  children: ComponentChildren;
}

/**
 * A button with a menu in the top layer; the browser itself closes it on Escape or a click elsewhere.
 *
 * On a touch screen it is a layer, since people go back to leave it. With a mouse, that would cost the way Forward.
 */
export function Menu({ label, buttonClass, button, align = "start", children }: MenuProps) {
  const id = useId();
  const anchor = useRef<HTMLButtonElement>(null);
  const popover = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const menu = popover.current;
    if (!menu) return;
    const toggled = (event: Event) => setOpen((event as ToggleEvent).newState === "open");
    let closeLayer: (() => void) | undefined;
    // Before anything is drawn: whoever goes back at once closes the menu, and does not leave the chat.
    const toggles = (event: Event) => {
      closeLayer?.();
      const opens = (event as ToggleEvent).newState === "open";
      closeLayer = opens && isTouch() ? openLayer(() => menu.hidePopover()) : undefined;
    };
    menu.addEventListener("beforetoggle", toggles);
    menu.addEventListener("toggle", toggled);
    return () => {
      closeLayer?.();
      menu.removeEventListener("beforetoggle", toggles);
      menu.removeEventListener("toggle", toggled);
    };
  }, []);
  useLayoutEffect(() => {
    // Only now do the items exist, and with them the menu's size.
    if (!isOpen || !popover.current || !anchor.current) return;
    placePopover(popover.current, anchor.current, align);
    popover.current
      .querySelector<HTMLElement>("a[href], button:not(:disabled)")
      ?.focus({ preventScroll: true });
  }, [isOpen, align]);
  return (
    <>
      <button
        ref={anchor}
        type="button"
        class={buttonClass}
        aria-label={label}
        aria-haspopup="true"
        aria-expanded={isOpen}
        aria-controls={id}
        title={label}
        onClick={() => popover.current?.togglePopover()}
      >
        {button}
      </button>
      <div
        ref={popover}
        id={id}
        class="menu-pop"
        popover="auto"
        onKeyDown={(event) => popover.current && walkMenu(event, popover.current)}
        onClick={(event) => {
          const item = (event.target as Element).closest(".menu-item");
          if (item && !item.hasAttribute("data-stay")) popover.current?.hidePopover();
        }}
      >
        {isOpen && children}
      </div>
    </>
  );
}

export function MenuButton(props: {
  icon: IconName;
  tone?: "bad";
  onClick: () => void;
  children: ComponentChildren;
}) {
  return (
    <button type="button" class="menu-item" data-tone={props.tone} onClick={props.onClick}>
      <Icon name={props.icon} />
      <span class="grow">{props.children}</span>
    </button>
  );
}

export function MenuLink(props: { icon: IconName; href: string; children: ComponentChildren }) {
  return (
    <a class="menu-item" href={props.href}>
      <Icon name={props.icon} />
      <span class="grow">{props.children}</span>
    </a>
  );
}
