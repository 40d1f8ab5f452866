/**
 * A text that somebody or a model wrote, in a panel: rendered by the chat's rules, with its source a press away.
 * What the chat makes more of, such as diagrams and formulas, stays code here.
 */
import { renderText } from "../markdown/render";
import t from "../texts/pages";

/** Longer ones are folded. */
const FOLDED_CHARACTERS = 1_500;

/** Show it rendered, with the switch in the panel's head; without a script the text stays. */
export function startWrittenText(box: HTMLElement): void {
  const source = box.querySelector<HTMLElement>("[data-source]");
  const head = box.querySelector(".panel-head");
  if (!source || !head) return;
  const text = source.textContent ?? "";
  const rendered = document.createElement("div");
  rendered.className = "md panel-body";
  rendered.innerHTML = renderText(text); // sanitized
  rendered.querySelectorAll("a").forEach(tellTarget);
  source.before(rendered);
  source.hidden = true;
  const asText = smallButton(t.asText);
  asText.setAttribute("aria-pressed", "false");
  asText.addEventListener("click", () => {
    source.hidden = !source.hidden;
    rendered.hidden = !source.hidden;
    asText.setAttribute("aria-pressed", String(!source.hidden));
  });
  head.append(asText);
  if (text.length > FOLDED_CHARACTERS) fold(box, [rendered, source]);
}

/** The address beside words that do not say it, so that nobody has to follow a link to know where it leads. */
export function tellTarget(link: HTMLAnchorElement): void {
  link.title = link.href;
  const words = (link.textContent ?? "").trim();
  const isTold = link.classList.contains("md-image") || words === link.href || `${words}/` === link.href;
  if (isTold) return;
  const target = document.createElement("span");
  target.className = "said-target";
  target.textContent = ` (${link.href})`;
  link.after(target);
}

function fold(box: HTMLElement, views: HTMLElement[]): void {
  const button = smallButton(t.showAll);
  const set = (isOpen: boolean) => {
    for (const view of views) view.classList.toggle("is-folded", !isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen ? t.showLess : t.showAll;
  };
  button.addEventListener("click", () => set(button.getAttribute("aria-expanded") !== "true"));
  // What has the focus is never hidden.
  for (const view of views) view.addEventListener("focusin", () => set(true));
  const foot = document.createElement("div");
  foot.className = "said-foot";
  foot.append(button);
  box.append(foot);
  set(false);
}

function smallButton(label: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm btn-outline-quiet";
  button.textContent = label;
  return button;
}
