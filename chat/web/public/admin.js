// The admin keeps a theme of its own in the browser; the person's, which the page carries, comes first (`src/theme.ts`).
(() => {
  const ours = { light: "light", dark: "dark", auto: "auto" }[document.documentElement.className];
  try {
    const chosen = ours ?? localStorage.getItem("trellis.theme") ?? "auto";
    localStorage.setItem("_x_adminTheme", JSON.stringify(chosen === "system" ? "auto" : chosen));
  } catch {
    // Without storage the admin goes by what the page carries.
  }
})();
