/** The page that a browser shows while a machine cold starts. It reloads itself, without JavaScript. */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import { type Answer, field, ownAnswer } from "./heads.ts";

/**
 * Seconds until the page reloads itself. An app's own start takes a second or more, and a screen reader begins to read
 * the page again each time.
 */
export const WAKE_PAGE_RELOAD_S = 2;
/** A page of one's own is kept in memory, and sent whole. Fonts and images in it are data. */
const MAX_PAGE_BYTES = 256 * 1024;
const RELOADS = /<meta\s[^>]*http-equiv\s*=\s*["']?refresh\b/i;

/** A page, ready to be sent. */
export interface WakePage {
  readonly body: Buffer;
  /** The value of `Content-Security-Policy`. */
  readonly policy: string;
}

const STYLE = `
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; text-align: center;
  background: #fff; color: #1d1d1f; }
main { padding: 2rem; }
h1 { font-size: 1.5rem; font-weight: 600; margin: 0 0 .5rem; }
p { margin: 0; color: #55555a; }
.bar { width: 12rem; height: .25rem; margin: 2rem auto 0; border-radius: 1rem; overflow: hidden; background: #d8d8dd; }
.bar::before { content: ""; display: block; width: 40%; height: 100%; border-radius: 1rem; background: #3a66d6;
  animation: pass 1.2s ease-in-out infinite alternate; }
@keyframes pass { to { transform: translateX(150%); } }
@media (prefers-color-scheme: dark) {
  body { background: #161618; color: #f2f2f4; }
  p { color: #b0b0b6; }
  .bar { background: #38383d; }
  .bar::before { background: #8fb0ff; }
}
@media (prefers-reduced-motion: reduce) { .bar::before { animation: none; width: 100%; } }
`;

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${WAKE_PAGE_RELOAD_S}">
<title>Starting</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Starting</h1>
<p role="status">This app was asleep. It opens here by itself in a moment.</p>
<div class="bar" aria-hidden="true"></div>
</main>
</body>
</html>
`;

/** Nothing but what is in the page itself, and no scripts. */
const NOTHING_ELSE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** The page that comes with Hibernaut. */
export const OWN_WAKE_PAGE: WakePage = {
  body: Buffer.from(HTML),
  policy: `${NOTHING_ELSE}; style-src 'sha256-${STYLE_HASH}'`,
};

/**
 * Reads a page of one's own. Rejects with `invalid_argument` if the file cannot be read, is too large or does not reload
 * itself, because browsers would then show it forever.
 *
 * @param setting the variable that names the file
 */
export async function readWakePage(path: string, setting: string): Promise<WakePage> {
  const wrong = (why: string) =>
    new HibernautError("invalid_argument", `The wake page ${path} cannot be used: ${why} Or unset ${setting}.`);
  const size = await stat(path).then(
    (found) => (found.isFile() ? found.size : undefined),
    (error: unknown) => {
      throw wrong(`${messageOf(error)}. Check the path.`);
    },
  );
  if (size === undefined) throw wrong("it is not a file. Name an HTML file.");
  if (size > MAX_PAGE_BYTES) throw wrong(`it has ${size} bytes. Use up to ${MAX_PAGE_BYTES}.`);
  const body = await readFile(path).catch((error: unknown) => {
    throw wrong(`${messageOf(error)}. Check its permissions.`);
  });
  if (!RELOADS.test(body.toString("utf8")))
    throw wrong(`it does not reload itself. Add <meta http-equiv="refresh" content="${WAKE_PAGE_RELOAD_S}"> to it.`);
  const own = "style-src 'unsafe-inline'; img-src data:; font-src data:";
  return { body, policy: `${NOTHING_ELSE}; ${own}` };
}

/**
 * Returns the page as an answer. With 503, search engines keep what they know of the address and programs see that it
 * is not the app; browsers show it nevertheless.
 */
export function wakePageAnswer({ body, policy }: WakePage, requestId: string): { answer: Answer; body: Buffer } {
  const fields = [
    field("Content-Type", "text/html; charset=utf-8"),
    field("Cache-Control", "no-store"),
    field("Content-Security-Policy", policy),
    field("Date", new Date().toUTCString()),
    field("Referrer-Policy", "no-referrer"),
    field("Retry-After", String(WAKE_PAGE_RELOAD_S)),
    field("X-Content-Type-Options", "nosniff"),
    field("Hibernaut-Request-Id", requestId),
  ];
  return ownAnswer(503, fields, body);
}
