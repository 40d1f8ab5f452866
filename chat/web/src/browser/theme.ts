/**
 * Light, dark, or as the system says. It is a setting of the person, which the page carries in `data-person-theme`:
 * empty where they never chose, absent where nobody is signed in. Then the choice of this browser holds.
 */
export type Theme = "system" | "light" | "dark";
const KEY = "trellis.theme";

export function isTheme(value: unknown): value is Theme {
  return value === "system" || value === "light" || value === "dark";
}

/** What was chosen: by the person, else in this browser. */
export function chosenTheme(): Theme {
  const { personTheme } = document.documentElement.dataset;
  if (isTheme(personTheme)) return personTheme;
  try {
    const value = localStorage.getItem(KEY);
    return isTheme(value) ? value : "system";
  } catch {
    return "system";
  }
}

/** Show a theme from now on, and keep it in this browser for pages without a person; saving it is the caller's. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset.theme;
  else dataset.theme = theme;
  if (dataset.personTheme !== undefined) dataset.personTheme = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  dispatchEvent(new CustomEvent("trellis:theme"));
}

/** Whether the page is dark now, by choice or as the system says. */
export function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// What is drawn for one theme is drawn again when the system's changes.
if (typeof matchMedia === "function") {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (!document.documentElement.dataset.theme) dispatchEvent(new CustomEvent("trellis:theme"));
  });
}
