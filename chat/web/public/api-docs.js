// The theme that was chosen in the product (`src/theme.ts`), before Swagger draws.
(() => {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    let chosen = null;
    try {
      chosen = localStorage.getItem("trellis.theme");
    } catch {
      // Without storage the system decides.
    }
    const isDark = chosen === "dark" || (chosen !== "light" && query.matches);
    document.documentElement.classList.toggle("dark-mode", isDark);
  };
  query.addEventListener("change", apply);
  apply();
})();
