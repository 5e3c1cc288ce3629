/** Contents of files over plain HTTP: `/files`, `/files/compose`, and what else the agent of E2B answers. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline as connect, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { Busboy } from "@fastify/busboy";
import { guestSize } from "@hibernaut/domain/config";
import { messageOf } from "@hibernaut/lib/text";
import { Refusal } from "../failure.ts";
import type { Files } from "./files.ts";
import { environmentOf, filesOf, type Inside } from "./inside.ts";
import { metadataOf } from "./metadata.ts";
import type { EntryInfo } from "./protocol/files_pb.ts";
import { targetOf } from "./target.ts";

/** The longest body of `/files/compose`, in bytes: some thousand paths. */
const MOST_COMPOSE_BYTES = 1024 * 1024;
/** How many files one upload may have. */
const MOST_PARTS = 1000;

type Answer = (inside: Inside, url: URL, request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

const sendFile: Answer = async (inside, url, request, response) =>
  download(await filesFor(inside, url), url, request, response);

/** What is answered, by method and path. */
export const ANSWERS: Readonly<Record<string, Answer>> = {
  "GET /health": (_inside, _url, _request, response) => void response.writeHead(204).end(),
  "GET /envs": ({ view }, _url, _request, response) => json(response, environmentOf(view)),
  "GET /metrics": (inside, _url, _request, response) => json(response, metricsOf(inside)),
  "GET /files": sendFile,
  "HEAD /files": sendFile,
  "POST /files": async (inside, url, request, response) => upload(await filesFor(inside, url), url, request, response),
  "POST /files/compose": (inside, _url, request, response) => compose(inside, request, response),
};

/** Answers a request. Rejects with a {@link Refusal} before anything was sent. */
export async function transfer(inside: Inside, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = targetOf(request);
  const route = `${request.method} ${url.pathname}`;
  const answer = Object.hasOwn(ANSWERS, route) ? ANSWERS[route] : undefined;
  if (answer === undefined) throw new Refusal(404, `${route} is nothing that a sandbox answers.`);
  await answer(inside, url, request, response);
}

async function filesFor(inside: Inside, url: URL): Promise<Files> {
  // A signature says for which user it was made.
  const named = url.searchParams.get("username") ?? (url.searchParams.has("signature") ? undefined : inside.named);
  return filesOf({ ...inside, named: named === "" ? undefined : named });
}

async function download(files: Files, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = pathOf(url);
  const { command, ended } = files.read(path);
  const chunks = (command.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) await ended;
  const zipped = accepts(request, "gzip");
  response.writeHead(200, {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": `inline; filename*=UTF-8''${encodeURIComponent(path.slice(path.lastIndexOf("/") + 1))}`,
    Vary: "Accept-Encoding",
    ...(zipped ? { "Content-Encoding": "gzip" } : {}),
  });
  if (request.method === "HEAD") return void response.end();
  const whole = async function* () {
    for (let next = first; next.done !== true; next = await chunks.next()) yield next.value;
    await ended; // a file that is cut short breaks the response off
  };
  if (zipped) await pipeline(whole, createGzip({ level: 1 }), response);
  else await pipeline(whole, response);
}

async function upload(files: Files, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const metadata = metadataOf(request.rawHeaders);
  const body = request.headers["content-encoding"] === "gzip" ? unzipped(request) : request;
  const type = request.headers["content-type"] ?? "";
  const path = url.searchParams.get("path") ?? undefined;
  const made = type.startsWith("multipart/form-data")
    ? await parts(type, body, (name, part) => files.write(requirePath(path ?? name), part, metadata))
    : [await files.write(pathOf(url), body, metadata)];
  json(response, made.map(uploadedWire));
}

/** The contents of a zipped body. It ends with the request, and nobody has to listen for its errors. */
function unzipped(request: IncomingMessage): Readable {
  const gunzip = createGunzip();
  connect(request, gunzip, () => {});
  return gunzip;
}

/** Writes each file of a form, one after the other. */
async function parts(
  type: string,
  body: Readable,
  write: (name: string, part: Readable) => Promise<EntryInfo>,
): Promise<EntryInfo[]> {
  const form = formOf(type);
  const open: Readable[] = [];
  const writes: Promise<EntryInfo>[] = [];
  let last: Promise<unknown> = Promise.resolve();
  form.on("file", (_field: string, part: Readable, name: string | undefined) => {
    part.on("error", () => {}); // what reads it notices that it closed
    open.push(part);
    const written = last.then(() => write(name ?? "", part));
    last = written.catch(() => part.resume());
    writes.push(written);
  });
  try {
    await pipeline(body, form);
  } catch {
    for (const part of open) part.destroy();
    await Promise.allSettled(writes);
    throw new Refusal(400, "The form is cut short, or is not one.");
  }
  return Promise.all(writes);
}

function formOf(type: string): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      // Clients send short contents as plain fields.
      isPartAFile: (field: string | undefined) => field === "file",
      headers: { "content-type": type },
      preservePath: true,
      limits: { files: MOST_PARTS, fields: 0 },
    });
  } catch (error) {
    throw new Refusal(400, `The form cannot be read: ${messageOf(error)}.`);
  }
}

async function compose(inside: Inside, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_COMPOSE_BYTES) throw new Refusal(400, "The body is too long.");
    chunks.push(chunk);
  }
  const { source_paths: sources, destination, username } = parsed(Buffer.concat(chunks).toString("utf8"));
  if (!Array.isArray(sources) || sources.length === 0 || !sources.every((one) => typeof one === "string"))
    throw new Refusal(400, "`source_paths` is a list of at least one path.");
  if (typeof destination !== "string" || destination === "") throw new Refusal(400, "`destination` is a path.");
  const named = typeof username === "string" && username !== "" ? username : inside.named;
  const entry = await (await filesOf({ ...inside, named })).compose(sources, destination);
  json(response, uploadedWire(entry));
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // said below
  }
  throw new Refusal(400, "The body is not a JSON object.");
}

function pathOf(url: URL): string {
  return requirePath(url.searchParams.get("path") ?? "");
}

function requirePath(path: string): string {
  if (path === "") throw new Refusal(400, "`path` is missing: which file is meant?");
  return path;
}

function uploadedWire({ name, path, metadata }: EntryInfo) {
  return { name, path, type: "file", ...(Object.keys(metadata).length > 0 && { metadata }) };
}

function metricsOf({ view: { record } }: Inside) {
  const { cpus, memoryMb } = guestSize(record.config);
  return { ts: Math.floor(Date.now() / 1000), cpu_count: Math.max(1, Math.ceil(cpus)), mem_total_mib: memoryMb };
}

function accepts({ headers }: IncomingMessage, coding: string): boolean {
  return (headers["accept-encoding"] ?? "").split(",").some((one) => {
    const [name = "", ...parameters] = one.trim().split(";");
    return name.trim() === coding && !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter));
  });
}

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
