/** The public page that says how an app is. Pure: no script, nothing from elsewhere, nothing that identifies a machine. */
import { createHash } from "node:crypto";
import type { AppStatus, AppStatusWord } from "@hibernaut/domain/app-status";

/** Seconds after which the page looks again by itself, and for which anything in between may keep it. */
const STATUS_PAGE_RELOAD_S = 30;
export const STATUS_PAGE_AGE_S = 10;

const WORDS: Readonly<Record<AppStatusWord, string>> = {
  up: "Up",
  asleep: "Asleep \u2013 wakes on request",
  failing: "Failing",
  stopped: "Stopped",
};

const STYLE = `
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; text-align: center;
  background: #fff; color: #1d1d1f; }
main { padding: 2rem; }
h1 { font-size: 1.25rem; font-weight: 600; margin: 0 0 1rem; overflow-wrap: anywhere; }
.state { font-size: 2rem; margin: 0 0 .5rem; }
.up { color: #1a6b34; }
.failing { color: #b3261e; }
.since { margin: 0; color: #55555a; }
@media (prefers-color-scheme: dark) {
  body { background: #161618; color: #f2f2f4; }
  .up { color: #7bd69a; }
  .failing { color: #ff9d94; }
  .since { color: #b0b0b6; }
}
`;

/** The value of `Content-Security-Policy`: the page's own style, and nothing else. */
export const STATUS_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Returns the page as HTML. */
export function statusPage(app: string, { word, since }: AppStatus): string {
  const name = escaped(app);
  const sinceText =
    since === null
      ? ""
      : `<p class="since">since <time datetime="${escaped(since)}">${escaped(inUtc(since))}</time></p>\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="${STATUS_PAGE_RELOAD_S}">
<title>${name}: ${WORDS[word]}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${name}</h1>
<p class="state ${word}">${WORDS[word]}</p>
${sinceText}</main>
</body>
</html>
`;
}

/** To the minute: `2026-01-31 14:30 UTC`. */
function inUtc(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
