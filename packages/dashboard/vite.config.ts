/** How the dashboard is bundled. `build.mjs` runs it. */
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // The page's policy takes files of its own origin only, so nothing may be written into the page or its styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
    rolldownOptions: {
      onLog(level, log, handle) {
        // A module of Node in the browser's way would fail when it is called.
        if (level === "warn") throw new Error(log.message);
        handle(level, log);
      },
    },
  },
});
