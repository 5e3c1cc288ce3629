/** The files of the dashboard, served from memory: a few, of one build, also while an upgrade replaces them on the disk. */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import type { FastifyReply, FastifyRequest } from "fastify";

/** What the page may do: nothing from elsewhere, no script in the page itself. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/** Names in here contain a fingerprint of the content, so they never change. */
const ASSETS = "/assets/";
/** A year, in seconds: the longest that caches promise. */
const FOREVER = "public, max-age=31536000, immutable";
const PAGE = "/index.html";
/** Paths of the API: what is unknown there stays an error of the API. */
const OF_API = /^\/(v1|metrics|openapi\.json|status)(\/|$)/;

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};
/** Compressed files lie next to the others, with these endings. The first that a browser accepts is sent. */
const ENCODINGS = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

interface StaticFile {
  body: Buffer;
  type: string;
  etag: string;
  /** The same, compressed, by the name of the encoding. */
  encoded: Map<string, Buffer>;
}

/** Files by their paths in URLs. */
export type Dashboard = ReadonlyMap<string, StaticFile>;

/** Reads the built dashboard. Empty if there is none, and without a directory. */
export async function readDashboard(folder: string | undefined): Promise<Dashboard> {
  const names = folder === undefined ? [] : await namesIn(folder);
  const contents = new Map<string, Buffer>();
  for (const name of names) contents.set(`/${name}`, await readFile(join(folder ?? "", name)));
  const files = new Map<string, StaticFile>();
  for (const [path, body] of contents) {
    const type = TYPES[extname(path)];
    // Compressed files are found by the ones that they belong to.
    if (type === undefined) continue;
    const encoded = ENCODINGS.map(([encoding, ending]) => [encoding, contents.get(path + ending)] as const);
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    files.set(path, { body, type, etag, encoded: new Map(encoded.filter((each) => each[1] !== undefined) as never) });
  }
  return files.has(PAGE) ? files : new Map();
}

/** Answers a request for a file of the dashboard, or for one of its pages. False if it is for neither. */
export function sendDashboard(dashboard: Dashboard, request: FastifyRequest, reply: FastifyReply): boolean {
  if (dashboard.size === 0 || (request.method !== "GET" && request.method !== "HEAD")) return false;
  const path = request.url.split("?", 1)[0] ?? "";
  const name = dashboard.has(path) ? path : pageFor(path, request.headers.accept);
  const file = name === undefined ? undefined : dashboard.get(name);
  if (name === undefined || file === undefined) return false;
  reply.headers({
    "cache-control": name.startsWith(ASSETS) ? FOREVER : "no-cache",
    "content-security-policy": PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    vary: "accept, accept-encoding",
    etag: file.etag,
  });
  if (request.headers["if-none-match"] === file.etag) void reply.code(304).send();
  else sendFile(file, request, reply);
  return true;
}

function sendFile({ body, type, encoded }: StaticFile, { method, headers }: FastifyRequest, reply: FastifyReply): void {
  const accepted = headers["accept-encoding"] ?? "";
  const [encoding] = ENCODINGS.find(([name]) => accepts(accepted, name) && encoded.has(name)) ?? [];
  const content = encoding === undefined ? body : (encoded.get(encoding) ?? body);
  if (encoding !== undefined) void reply.header("content-encoding", encoding);
  void reply.code(200).type(type).header("content-length", content.length);
  void reply.send(method === "HEAD" ? null : content);
}

/** The page itself finds out from the path what to show. Only browsers get it: programs get errors of the API. */
function pageFor(path: string, accept: string | undefined): string | undefined {
  const isPage = !OF_API.test(path) && !path.startsWith(ASSETS) && /\btext\/html\b/.test(accept ?? "");
  return isPage ? PAGE : undefined;
}

function accepts(header: string, encoding: string): boolean {
  return header.split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((word) => word.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** The files in a directory and below, relative to it; none if it does not exist. */
async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(ifAbsent([]));
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join("/"));
}
