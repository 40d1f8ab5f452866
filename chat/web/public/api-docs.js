// The theme that was chosen in the product (`src/theme.ts`): by the person, else in this browser; before Swagger draws.
(() => {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    let chosen = document.documentElement.dataset.personTheme;
    try {
      chosen ||= localStorage.getItem("trellis.theme");
    } catch {
      // Without storage the system decides.
    }
    const isDark = chosen === "dark" || (chosen !== "light" && query.matches);
    document.documentElement.classList.toggle("dark-mode", isDark);
  };
  query.addEventListener("change", apply);
  apply();
})();
