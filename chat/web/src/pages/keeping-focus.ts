/**
 * A control that asks the server is disabled meanwhile, and what it stands in is drawn anew. Browsers then drop the
 * focus, and whoever uses the keyboard would begin again at the top of the page.
 */

interface Asked {
  control: HTMLElement;
  /** What sends its request, as its form. */
  asking: Element | null;
  address: string;
  /** Where the answer is drawn, as a selector. */
  target: string;
}

const ADDRESSES = ["hx-post", "hx-get"];
const CONTROLS = ["button", "a[href]", "summary", "input:not([type=hidden])", "select", "textarea"].join();

const SETTLED_MS = 200;

let asked: Asked | null = null;

const isLost = (): boolean => !document.activeElement || document.activeElement === document.body;

function keep(): void {
  const control = document.activeElement;
  if (!(control instanceof HTMLElement) || isLost()) return;
  const asking = control.closest(ADDRESSES.map((name) => `[${name}]`).join());
  const address = ADDRESSES.map((name) => asking?.getAttribute(name)).find(Boolean) ?? "";
  asked = { control, asking, address, target: asking?.getAttribute("hx-target") ?? "" };
}

/** The same control, another one that asks the same, or the first one of what was drawn. */
function candidates({ control, address, target }: Asked): HTMLElement[] {
  const same = address
    ? [
        ...document.querySelectorAll<HTMLElement>(
          ADDRESSES.map((name) => `[${name}="${CSS.escape(address)}"]`).join(),
        ),
      ]
    : [];
  const inside = same.flatMap((one) =>
    one.matches(CONTROLS) ? [one] : [...one.querySelectorAll<HTMLElement>(CONTROLS)],
  );
  const box = target.startsWith("#") ? document.querySelector(target) : null;
  return [control, ...inside, ...(box?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])];
}

/** Whether an answer is of its request, and not of another one that runs at the same time; or has replaced it. */
const concerns = ({ control, asking }: Asked, source: EventTarget | null): boolean =>
  source === asking || !control.isConnected || asking?.isConnected === false;

function giveBack(source: EventTarget | null): void {
  if (!asked || !isLost() || !concerns(asked, source)) return;
  for (const one of candidates(asked)) {
    if (one.isConnected) one.focus({ preventScroll: true });
    if (!isLost()) return;
  }
}

export function startKeepingFocus(): void {
  // Before anything is disabled.
  document.addEventListener("htmx:config:request", keep);
  // It is enabled again just after this is told; where what asked is gone, nothing is told.
  document.addEventListener("htmx:finally:request", ({ target }) => setTimeout(giveBack, 0, target));
  document.addEventListener("htmx:after:swap", ({ target }) => setTimeout(giveBack, SETTLED_MS, target));
  // Whoever clicks beside everything wants no focus.
  document.addEventListener("pointerdown", () => {
    asked = null;
  });
}
