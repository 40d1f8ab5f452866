import tailwindcss from "@tailwindcss/vite";
import { defineConfig, type Plugin } from "vite";

/** KaTeX names its fonts in three formats; every browser that runs the application reads the first one. */
const oneFormatOfFonts: Plugin = {
  name: "one-format-of-fonts",
  enforce: "pre",
  transform: (code, id) =>
    /katex.*\.css$/.test(id)
      ? code.replace(/,\s*url\([^)]+\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, "")
      : null,
};

/** One entry per kind of page; Django looks the built names up in manifest.json. */
export default defineConfig({
  base: "/static/web/",
  plugins: [oneFormatOfFonts, tailwindcss()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // As docs/operations.md and templates/parts/old_browser.html say.
    target: ["chrome117", "edge117", "firefox128", "safari17.4", "ios17.4"],
    outDir: "dist",
    manifest: "manifest.json",
    assetsDir: "",
    // Inlined assets would need data: URLs in directives that the content policy keeps closed.
    assetsInlineLimit: 0,
    // What a part imports is fetched with it, and not one step of imports after the other. The policy lets in our origin.
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: [
        "src/chat.tsx",
        "src/site.ts",
        "src/servers.ts",
        "src/alerts.ts",
        "src/audit.ts",
        "src/turn.ts",
        "src/buds.ts",
        "src/print.ts",
        "src/shared.ts",
        "src/shortcuts.tsx",
        "src/admin.ts",
      ],
    },
  },
});
