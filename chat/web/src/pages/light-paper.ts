/** Has pages of the admin printed in light colours. They follow the classes light and dark, also on paper. */
export function startLightPaper(): void {
  const { classList } = document.documentElement;
  addEventListener("beforeprint", () => {
    if (classList.replace("dark", "light"))
      addEventListener("afterprint", () => classList.replace("light", "dark"), { once: true });
  });
}
