/** How the dashboard is bundled. `build.mjs` runs it. */
import { defineConfig, type Plugin } from "vite";

/** What xterm.js does that the page's policy refuses, how often it is in its code, and what it does instead. */
const XTERM_STYLES: readonly [from: string, times: number, to: string][] = [
  // See adopted-style.ts.
  ['createElement("style")', 3, 'createElement("adopted-style")'],
  ['t.setAttribute("style",`${t.getAttribute("style")||""}${e};`)', 1, "t.style.cssText+=`${e};`"],
];

/** Keeps the terminal within the page's policy. A version of xterm.js that has other code does not build. */
const xtermWithinPolicy: Plugin = {
  name: "xterm-within-policy",
  transform: {
    filter: { id: /@xterm\/xterm\/lib\/xterm\.mjs$/ },
    handler(code) {
      let changed = code;
      for (const [from, times, to] of XTERM_STYLES) {
        const found = changed.split(from).length - 1;
        if (found !== times)
          throw new Error(`xterm.js has ${found} times ${from}, not ${times}. Look at what it does about styles now.`);
        changed = changed.replaceAll(from, () => to);
      }
      return { code: changed, map: null };
    },
  },
};

export default defineConfig({
  root: import.meta.dirname,
  plugins: [xtermWithinPolicy],
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // The page's policy takes files of its own origin only, so nothing may be written into the page or its styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
    rolldownOptions: {
      // Otherwise it warns of slow plugins where the host is busy.
      checks: { bundlerTimings: false },
      onLog(level, log, handle) {
        // A module of Node in the browser's way would fail when it is called.
        if (level === "warn") throw new Error(log.message);
        handle(level, log);
      },
    },
  },
});
