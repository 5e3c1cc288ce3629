/** Gives other hosts of the cluster the templates that this one has, piece by piece. */
import { mkdir, open, readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { messageOf } from "@hibernaut/lib/text";
import type { MadeTemplate, TemplatePapers, TemplateTravel } from "@hibernaut/machines";
import { compression } from "../moves/frames.ts";
import type { Rate } from "../moves/rate.ts";
import { writeTo } from "../moves/shipment.ts";
import type { WarnLog } from "../ownership/retry.ts";
import { textOf } from "../peer-body.ts";
import { contentsOf, isContents, readPiece, type TemplateFile } from "./contents.ts";
import { PieceRoom, type Range } from "./frames.ts";

const PATH = /^\/templates\/([0-9a-f]{14})\/(papers|pieces)$/;
/** What is asked for: a range for each gap in what another host has. */
const MAX_JSON_BYTES = 1024 * 1024;
/** For how long another host may take nothing of what is sent, in milliseconds: its disk may be slow. */
const STALLED_MS = 120_000;

/** What another host is told of a template before it asks for pieces. */
export interface SentPapers extends TemplatePapers {
  files: TemplateFile[];
}

interface SourceOptions {
  travel: Pick<TemplateTravel, "get" | "papers" | "folder" | "contents">;
  rate: Rate;
  log: WarnLog;
}

export class TemplateSource {
  readonly #options: SourceOptions;

  constructor(options: SourceOptions) {
    this.#options = options;
  }

  /** Answers a request of another host if it is about a template. Resolves with whether it was. */
  async route(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const [, id, what] = PATH.exec(request.url ?? "") ?? [];
    if (id === undefined || request.method !== "POST") return false;
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the other host hung up")));
    try {
      const asked = JSON.parse(await textOf(request, MAX_JSON_BYTES, tooLong)) as { ranges?: Range[] };
      const template = this.#require(id);
      if (what === "papers") answer(response, 200, await this.#papers(template, gone.signal));
      else await this.#send(template, asked.ranges ?? [], response, gone.signal);
    } catch (error) {
      this.#refuse(response, id, error);
    }
    return true;
  }

  async #papers(template: TemplateRecord, signal: AbortSignal): Promise<SentPapers> {
    const { travel } = this.#options;
    const papers = await travel.papers(template);
    return { ...papers, files: await keptContents(placeOf(template, travel), template, signal) };
  }

  async #send(
    template: TemplateRecord,
    ranges: readonly Range[],
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const place = placeOf(template, this.#options.travel);
    const files = await keptContents(place, template, signal);
    response.setTimeout(STALLED_MS, () => response.destroy());
    response.writeHead(200, { "content-type": "application/octet-stream" });
    const stream = compression();
    const feed = async () => {
      for await (const bytes of framesOf(place.folder, files, ranges)) await writeTo(stream, bytes, signal);
      stream.end();
    };
    const fed = feed().catch((error: Error) => void stream.destroy(error));
    await pipeline(stream, this.#limited(signal), response, { signal });
    await fed;
  }

  /** Moves and templates leave this host at one rate. */
  #limited(signal: AbortSignal): (stream: AsyncIterable<Buffer>) => AsyncGenerator<Buffer, void> {
    const { rate } = this.#options;
    return async function* limited(stream) {
      for await (const bytes of stream) {
        await rate.take(bytes.length, signal);
        yield bytes;
      }
    };
  }

  #require(id: string): TemplateRecord {
    const template = this.#options.travel.get(id);
    if (template !== undefined) return template;
    throw new HibernautError("not_found", `This host has no template ${id}.`, { template: id });
  }

  /** Once something was sent, only a connection that breaks off tells that there is no more. */
  #refuse(response: ServerResponse, id: string, error: unknown): void {
    if (response.destroyed) return;
    this.#options.log.warn({ template: id, reason: messageOf(error) }, "a template cannot be sent to another host");
    if (response.headersSent) return void response.destroy();
    const known = isHibernautError(error) ? error : new HibernautError("internal", messageOf(error));
    answer(response, known.status, { error: known.code, message: known.message, details: known.details });
  }
}

/** Where the files of a template are, and where it is kept what they are. */
type Place = Pick<MadeTemplate, "folder" | "contents">;

function placeOf({ id }: TemplateRecord, travel: Pick<TemplateTravel, "folder" | "contents">): Place {
  return { folder: travel.folder(id), contents: travel.contents(id) };
}

/** What a template consists of. Its files are read only if nobody has done that before. Rejects as {@link contentsOf} does. */
export async function keptContents(
  { folder, contents }: Place,
  template: TemplateRecord,
  signal: AbortSignal,
): Promise<TemplateFile[]> {
  const text = await readFile(contents, "utf8").catch(ifAbsent(undefined));
  const kept = text === undefined ? undefined : parsed(text);
  if (isContents(kept, template)) return kept;
  const files = await contentsOf(folder, template, signal);
  await keepContents(contents, files);
  return files;
}

/** Keeps in a file what a template consists of. */
export async function keepContents(file: string, files: readonly TemplateFile[]): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, JSON.stringify(files), { mode: 0o600 });
}

/** Undefined for something else than JSON: it is made again. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Yields what is sent, each only until the next one is asked for. */
async function* framesOf(
  folder: string,
  files: readonly TemplateFile[],
  ranges: readonly Range[],
): AsyncGenerator<Buffer, void> {
  const room = new PieceRoom();
  for (const { file: number, first, count } of ranges) {
    const path = files[number]?.path;
    if (path === undefined) throw new HibernautError("invalid_argument", "The template has no such file.");
    await using file = await open(join(folder, path));
    for (let piece = first; piece < first + count; piece += 1) {
      const { length } = await readPiece(file, piece, room.bytes);
      if (length === 0) throw new Error(`there is no piece ${piece} of ${path}`);
      yield* room.frame(number, piece, length);
    }
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function tooLong(): HibernautError {
  return new HibernautError("payload_too_large", "Too many pieces were asked for at once.");
}
