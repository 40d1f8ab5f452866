/** Entry of every page that Django draws: theme, menus, confirmations, copy buttons, notices of failed requests. */
import "./styles/app.css";
import { startWorker } from "./installing";
import { onSignedIn, startSignIn } from "./sign-in";
import common from "./texts/common";
import t from "./texts/pages";
import { applyTheme, savedTheme, type Theme } from "./theme";
import { placePopover, walkMenu } from "./ui/place";

function showTheme(): void {
  const theme = savedTheme();
  for (const button of document.querySelectorAll<HTMLElement>("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
  }
}

/** A short notice at the edge of the window; text only. */
export function notify(text: string, tone: "ok" | "bad" = "bad"): void {
  const box = document.createElement("div");
  box.className = "toast-box";
  box.dataset.tone = tone;
  box.textContent = text;
  document.getElementById("toasts")?.append(box);
  setTimeout(() => box.remove(), 7000);
}

/** Ask before something is done that cannot be taken back. */
export function askFirst(question: string, label: string, run: () => void): void {
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
    if (dialog.returnValue === "yes") run();
  });
  dialog.showModal();
}

function menuOf(event: Event): HTMLElement | null {
  return event.target instanceof HTMLElement && event.target.matches(".menu-pop[popover]")
    ? event.target
    : null;
}

document.addEventListener(
  "toggle",
  (event) => {
    const menu = menuOf(event);
    if (!menu || (event as ToggleEvent).newState !== "open") return;
    const anchor = document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`);
    if (anchor) placePopover(menu, anchor, menu.dataset.align === "end" ? "end" : "start");
    menu.querySelector<HTMLElement>("a[href], button")?.focus({ preventScroll: true });
  },
  true,
);

document.addEventListener("keydown", (event) => {
  const menu = (event.target as Element).closest<HTMLElement>(".menu-pop[popover]");
  if (menu) walkMenu(event, menu);
});

document.addEventListener("click", (event) => {
  const target = event.target as Element;
  const theme = target.closest<HTMLElement>("[data-theme-choice]");
  if (theme) {
    applyTheme(theme.dataset.themeChoice as Theme);
    showTheme();
  }
  const copy = target.closest<HTMLElement>("[data-copy]");
  if (copy) {
    const text = document.querySelector(copy.dataset.copy ?? "")?.textContent ?? "";
    navigator.clipboard.writeText(text).then(
      () => notify(t.copied, "ok"),
      () => notify(common.copyBlocked),
    );
  }
  const opener = target.closest<HTMLElement>("[data-open]");
  const panel = opener && document.getElementById(opener.dataset.open ?? "");
  if (panel instanceof HTMLDetailsElement) {
    panel.open = true;
    panel.scrollIntoView({ block: "start" });
    panel.querySelector<HTMLElement>("input:not([type=hidden]), select, textarea")?.focus();
    event.preventDefault();
  }
  const unfold = target.closest<HTMLElement>("[data-unfold]");
  if (unfold) {
    const isOpen = unfold.getAttribute("aria-expanded") !== "true";
    unfold.setAttribute("aria-expanded", String(isOpen));
    const rest = document.getElementById(unfold.getAttribute("aria-controls") ?? "");
    if (rest) rest.hidden = !isOpen;
  }
  const item = target.closest(".menu-pop[popover] .menu-item");
  if (item) item.closest<HTMLElement>(".menu-pop")?.hidePopover();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.confirm || form.dataset.confirmed) return;
  event.preventDefault();
  askFirst(form.dataset.confirm, form.dataset.confirmLabel ?? t.confirm, () => {
    form.dataset.confirmed = "1";
    form.requestSubmit();
  });
});

/** Filters that apply themselves as soon as they are chosen. */
document.addEventListener("change", (event) => {
  const field = event.target as HTMLElement;
  if (field.matches("[data-submit]")) field.closest("form")?.requestSubmit();
});

for (const name of ["htmx:response:error", "htmx:error"]) {
  document.addEventListener(name, () => {
    notify(t.requestFailed);
  });
}

const FORMS: Record<string, Intl.DateTimeFormatOptions> = {
  day: { dateStyle: "medium" },
  minute: { dateStyle: "medium", timeStyle: "short" },
  second: { dateStyle: "medium", timeStyle: "medium" },
};

/** As exact as the server wrote it: seconds stand where they matter. */
function exactness(text: string): string {
  if (/\d:\d\d:\d\d/.test(text)) return "second";
  return /\d:\d\d|[ap]\.m\.|noon/.test(text) ? "minute" : "day";
}

/** Moments in the reader's own time zone; the server writes them in its own. */
export function localTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-local]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.dataset.local ||= exactness(time.textContent);
    time.textContent = moment.toLocaleString(undefined, FORMS[time.dataset.local]);
    time.title = time.dateTime;
  }
}

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** How long ago, in words that stay right while the page is open. */
export function relativeTimes(root: ParentNode = document): void {
  for (const time of root.querySelectorAll<HTMLTimeElement>("time[data-relative]")) {
    const seconds = Math.round((Date.parse(time.dateTime) - Date.now()) / 1000);
    if (Number.isNaN(seconds)) continue;
    time.title = new Date(time.dateTime).toLocaleString();
    if (seconds > -45) time.textContent = common.justNow;
    else if (seconds > -3600) time.textContent = RELATIVE.format(Math.round(seconds / 60), "minute");
    else if (seconds > -86_400) time.textContent = RELATIVE.format(Math.round(seconds / 3600), "hour");
    else time.textContent = RELATIVE.format(Math.round(seconds / 86_400), "day");
  }
}

/** The browser's time zone, for whoever has chosen none. */
// Of more tabs than a narrow page shows, the one that is open is among those.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

const zone = document.querySelector<HTMLInputElement>('[data-time-zone="guess"] input[name="time_zone"]');
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || zone.value;

onSignedIn(({ name, ok }) => {
  if (ok) notify(t.connected(name), "ok");
  // Who is connected to what is all that such a page shows.
  if (ok && document.querySelector("[data-reloads-on-sign-in]")) location.reload();
});
startSignIn();
startWorker();

showTheme();
localTimes();
relativeTimes();
setInterval(relativeTimes, 20_000);
document.addEventListener("htmx:after:swap", () => {
  localTimes();
  relativeTimes();
});
