// The admin's package keeps things in the browser, and stands still where that is forbidden. It gets a memory of the page.
(() => {
  const remember = () => {
    const kept = new Map();
    return {
      get length() {
        return kept.size;
      },
      key: (at) => [...kept.keys()][at] ?? null,
      getItem: (key) => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: (key) => void kept.delete(String(key)),
      clear: () => kept.clear(),
    };
  };
  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      void window[name].length;
    } catch {
      Object.defineProperty(window, name, { configurable: true, value: remember() });
    }
  }
})();

// The admin keeps a theme of its own in the browser; the person's, which the page carries, comes first (`src/theme.ts`).
(() => {
  const ours = { light: "light", dark: "dark", auto: "auto" }[document.documentElement.className];
  try {
    const chosen = ours ?? localStorage.getItem("trellis.theme") ?? "auto";
    localStorage.setItem("_x_adminTheme", JSON.stringify(chosen === "system" ? "auto" : chosen));
  } catch {
    // A full storage takes nothing more; then the admin goes by what the page carries.
  }
})();
