import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

/** One entry per kind of page; Django looks the built names up in manifest.json. */
export default defineConfig({
  base: "/static/web/",
  plugins: [tailwindcss()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    manifest: "manifest.json",
    assetsDir: "",
    // Inlined assets would need data: URLs in directives that the content policy keeps closed.
    assetsInlineLimit: 0,
    // Preloads would be <link> elements without the nonce; chunks inherit it from the script that imports them.
    modulePreload: false,
    rolldownOptions: {
      input: ["src/chat.tsx", "src/site.ts", "src/servers.ts", "src/audit.ts"],
    },
  },
});
