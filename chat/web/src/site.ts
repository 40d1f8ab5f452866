/** Entry of every page that Django draws: theme, menus, confirmations, copy buttons, notices of failed requests. */
import "./styles/app.css";
import "./browser/input-method";
import { leadBack } from "./browser/last-chat";
import { browserTimeZone, type Choice, example } from "./formats";
import { startAddingLines } from "./pages/adding-lines";
import { startAtAnswer } from "./pages/arriving";
import { askFirst } from "./pages/asking";
import { labelTables } from "./pages/card-labels";
import { startFinding } from "./pages/finding";
import { forgetAtSignOut, forgetOthers } from "./pages/forgetting";
import { startWorker } from "./pages/installing";
import { startKeepingFocus } from "./pages/keeping-focus";
import { startKeepingTyped } from "./pages/keeping-typed";
import { startLiveCounts } from "./pages/live-counts";
import "./pages/menus";
import { applyTheme, chosenTheme, isTheme } from "./browser/theme";
import { startPasskeys } from "./pages/passkeys";
import { startPush } from "./pages/push";
import { questionOf } from "./pages/question-of";
import { startReadingNotices } from "./pages/reading-notices";
import { refusalOf } from "./pages/refusals";
import { startShownOnce } from "./pages/shown-once";
import { onSignedIn, startSignIn } from "./pages/sign-in";
import { localTimes, relativeTimes } from "./pages/times";
import { startTypedAddresses } from "./pages/typed-addresses";
import { startTypedTimes } from "./pages/typed-times";
import { startUnfolding } from "./pages/unfolding";
import { pressed } from "./shortcuts/own";
import common from "./texts/common";
import t from "./texts/pages";
import { closestTo } from "./ui/closest";

function showTheme(): void {
  const theme = chosenTheme();
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-theme-form] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
}

/** Show the chosen theme at once, and save it for the person. */
async function chooseTheme(form: HTMLFormElement, button: HTMLButtonElement): Promise<void> {
  if (!isTheme(button.value)) return;
  applyTheme(button.value);
  showTheme();
  try {
    const body = new FormData(form, button);
    const answer = await fetch(`${form.action}?format=json`, { method: "POST", body });
    if (!answer.ok) throw new Error(answer.statusText);
  } catch {
    notify(t.themeNotSaved);
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

document.addEventListener("click", (event) => {
  const copy = closestTo(event, "[data-copy]");
  if (copy) {
    const text = document.querySelector(copy.dataset.copy ?? "")?.textContent ?? "";
    navigator.clipboard.writeText(text).then(
      () => notify(t.copied, "ok"),
      () => notify(common.copyBlocked),
    );
  }
  const opener = closestTo(event, "[data-open]");
  const panel = opener && document.getElementById(opener.dataset.open ?? "");
  if (panel instanceof HTMLDetailsElement) {
    panel.open = true;
    panel.scrollIntoView({ block: "start" });
    panel.querySelector<HTMLElement>("input:not([type=hidden]), select, textarea")?.focus();
    event.preventDefault();
  }
  const unfold = closestTo(event, "[data-unfold]");
  if (unfold) {
    const isOpen = unfold.getAttribute("aria-expanded") !== "true";
    unfold.setAttribute("aria-expanded", String(isOpen));
    const rest = document.getElementById(unfold.getAttribute("aria-controls") ?? "");
    if (rest) rest.hidden = !isOpen;
  }
});

document.addEventListener("keydown", (event) => {
  const search = document.querySelector<HTMLAnchorElement>(".topbar-search");
  if (!search || pressed(event) !== "search") return;
  event.preventDefault();
  location.assign(search.href);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  if (form.dataset.themeForm !== undefined && event.submitter instanceof HTMLButtonElement) {
    event.preventDefault();
    void chooseTheme(form, event.submitter);
    return;
  }
  if (!form.dataset.confirm || form.dataset.confirmed) return;
  event.preventDefault();
  askFirst(questionOf(form), form.dataset.confirmLabel ?? "", () => {
    form.dataset.confirmed = "1";
    form.requestSubmit();
  });
});

/** Filters that apply themselves as soon as they are chosen. */
document.addEventListener("change", (event) => {
  const field = event.target as HTMLElement;
  if (field.matches("[data-submit]")) field.closest("form")?.requestSubmit();
});

document.addEventListener("htmx:response:error", (event) => notify(refusalOf(event as CustomEvent)));
document.addEventListener("htmx:error", () => notify(t.requestFailed));

// Of more tabs or settings than fit, the one that is open is in sight.
document
  .querySelector(":is(.tabs, .settings-list) [aria-current]")
  ?.scrollIntoView({ inline: "center", block: "nearest" });

/** The browser's time zone, for whoever has chosen none. */
const zone = document.querySelector<HTMLInputElement>('[data-time-zone="guess"] input[name="time_zone"]');
if (zone) zone.value = browserTimeZone() || zone.value;

/** The choice on the page of formats, as it will look. */
const formats = document.querySelector<HTMLFormElement>("[data-formats-form]");
function showExample(form: HTMLFormElement): void {
  const data = new FormData(form);
  const value = (name: keyof Choice) => String(data.get(name) ?? "");
  const shown = form.querySelector("[data-formats-example]");
  if (!shown) return;
  shown.textContent = example(Date.now(), {
    time_zone: value("time_zone"),
    date_format: value("date_format"),
    clock: value("clock"),
    number_format: value("number_format"),
  });
}
if (formats) {
  const browsers = formats.querySelector<HTMLOptionElement>('[name="time_zone"] option[value=""]');
  if (browsers) browsers.textContent += ` (${browserTimeZone().replaceAll("_", " ")})`;
  formats.addEventListener("change", () => showExample(formats));
  showExample(formats);
}

onSignedIn(({ name, ok }) => {
  if (ok) notify(t.connected(name), "ok");
  // Who is connected to what is all that such a page shows.
  if (ok && document.querySelector("[data-reloads-on-sign-in]")) location.reload();
});
startSignIn();
startPasskeys(notify);
startWorker();
forgetAtSignOut();
const { person } = document.documentElement.dataset;
if (person) forgetOthers(person);
void startPush();
startLiveCounts();
startReadingNotices();
startAtAnswer();
startAddingLines();
startUnfolding();
startKeepingFocus();

showTheme();
leadBack();
localTimes();
relativeTimes();
startTypedTimes(document);
startShownOnce(document);
startTypedAddresses();
if (person && startKeepingTyped(person)) notify(t.putBack, "ok");
labelTables();
startFinding();
setInterval(relativeTimes, 20_000);
document.addEventListener("htmx:after:swap", () => {
  labelTables();
  localTimes();
  relativeTimes();
});
