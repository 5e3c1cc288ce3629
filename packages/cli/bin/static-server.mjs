/**
 * Serves the files of a directory over HTTP. Builds of static sites put this file into their images, so it imports only
 * what Node has. `node static-server.mjs <directory>`; listens on PORT.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";
import { pipeline } from "node:stream/promises";

const DEFAULT_PORT = 8080;
/** Types by extension; others are sent as bytes. */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".webmanifest": "application/manifest+json",
  ".txt": "text/plain; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".xml": "application/xml",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".avif": "image/avif",
  ".ico": "image/x-icon",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".ttf": "font/ttf",
  ".pdf": "application/pdf",
  ".wasm": "application/wasm",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".webm": "video/webm",
};

const root = await realpath(process.argv[2] ?? ".");
/** Files of an image all have the same time, so that only their content tells versions apart. @type {Map<string, string>} */
const tags = new Map();

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    // The client is gone, or a file cannot be read.
    if (!response.headersSent) response.writeHead(500, { "content-length": 0 });
    response.end();
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") console.error(error);
  });
});
server.listen(Number(process.env.PORT || DEFAULT_PORT), () => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  console.log(`serving ${root} on port ${port}`);
});
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(0));

/**
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 */
async function answer(request, response) {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD", "content-length": 0 }).end();
    return;
  }
  const [path = "/", query] = (request.url ?? "/").split(/\?(.*)/s, 2);
  const found = await find(path);
  if (found?.directory && !path.endsWith("/")) {
    // Without the slash, links in the page would lead elsewhere. Only this host's own paths, never `//elsewhere`.
    const location = `${path.replace(/^\/+/, "/")}/${query === undefined ? "" : `?${query}`}`;
    response.writeHead(301, { location, "content-length": 0 }).end();
    return;
  }
  const file = found?.directory ? await find(`${path}index.html`) : found;
  if (file !== undefined && !file.directory) return send(request, response, file, 200);
  const page = await find("/404.html");
  if (page !== undefined && !page.directory) return send(request, response, page, 404);
  response.writeHead(404, { "content-type": "text/plain; charset=utf-8" });
  response.end(request.method === "HEAD" ? undefined : "Not found\n");
}

/**
 * @typedef {{ path: string, size: number, directory: boolean }} Found
 * @param {string} path of a URL
 * @returns {Promise<Found | undefined>} undefined for what is not there, is outside of the directory, or is hidden
 */
async function find(path) {
  try {
    const decoded = decodeURIComponent(path);
    if (decoded.includes("\0") || decoded.split("/").some((part) => part.startsWith(".") && part !== ".well-known"))
      return undefined;
    // Links are followed first: one may lead outside.
    const real = await realpath(join(root, decoded));
    if (real !== root && !real.startsWith(root === sep ? sep : root + sep)) return undefined;
    const stats = await stat(real);
    if (!stats.isFile() && !stats.isDirectory()) return undefined;
    return { path: real, size: stats.size, directory: stats.isDirectory() };
  } catch {
    return undefined; // no such file, or no valid URL
  }
}

/**
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 * @param {Found} file
 * @param {number} status
 */
async function send(request, response, { path, size }, status) {
  const etag = await tagOf(path);
  const type = TYPES[/** @type {keyof typeof TYPES} */ (extname(path).toLowerCase())] ?? "application/octet-stream";
  const headers = { etag, "cache-control": "no-cache", "x-content-type-options": "nosniff" };
  if (status === 200 && request.headers["if-none-match"]?.split(/\s*,\s*/).includes(etag)) {
    response.writeHead(304, headers).end();
    return;
  }
  response.writeHead(status, { ...headers, "content-type": type, "content-length": size });
  if (request.method === "HEAD") response.end();
  else await pipeline(createReadStream(path), response);
}

/** @param {string} path */
async function tagOf(path) {
  const known = tags.get(path);
  if (known !== undefined) return known;
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  const tag = `"${hash.digest("base64url").slice(0, 22)}"`;
  tags.set(path, tag);
  return tag;
}
