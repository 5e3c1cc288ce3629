/**
 * Images between hosts: a host that lacks one gets it from a host that has it. What arrives is the same file to the byte,
 * which the memory of a machine that moves counts on, and an uploaded image is nowhere else.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { messageOf } from "../../lib/text.ts";
import type { ElsewhereImage, Image, ImagesElsewhere } from "../../images/contract.ts";
import type { Cluster } from "../cluster.ts";
import { type Frame, frame, FRAMES, framesOf } from "../moves/frames.ts";

/** How much is read, sent and checked at once. */
const PIECE_BYTES = 1024 * 1024;
/** A host that sends nothing for this long is given up. */
const SILENCE_MS = 20_000;
const PATH = /^\/images\/([0-9a-f]{64})$/;

export interface SharedImagesOptions {
  cluster: Pick<Cluster, "host" | "view" | "peers">;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** Gets images from the other hosts, and gives them this host's. */
export class SharedImages implements ImagesElsewhere {
  readonly #options: SharedImagesOptions;
  readonly #server: Server;
  #find: (digest: string) => Promise<Image | undefined> = async () => undefined;

  constructor(options: SharedImagesOptions) {
    this.#options = options;
    this.#server = createServer((incoming, response) => void this.#answer(incoming, response));
  }

  /** Says how to find this host's own images. Until then it has none for others. */
  offer(find: (digest: string) => Promise<Image | undefined>): void {
    this.#find = find;
  }

  /** Takes a connection that another host made to ask for images. */
  accept(socket: TLSSocket): void {
    this.#server.emit("connection", socket);
  }

  async fetch(digest: string, rootfs: string, signal: AbortSignal): Promise<ElsewhereImage | undefined> {
    const { cluster, log } = this.#options;
    for (const { name, up } of cluster.view.hosts()) {
      if (up === undefined || name === cluster.host) continue;
      try {
        const image = await this.#from(name, digest, rootfs, signal);
        if (image === undefined) continue;
        log.info({ image: digest, host: name }, `got an image from host ${name}`);
        return image;
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ image: digest, host: name }, `host ${name} could not send an image: ${messageOf(error)}`);
      }
    }
    return undefined;
  }

  close(): void {
    this.#server.closeAllConnections();
  }

  /** Undefined when the host does not have it. */
  async #from(host: string, digest: string, rootfs: string, signal: AbortSignal): Promise<ElsewhereImage | undefined> {
    const { tls, ...at } = this.#options.cluster.peers.target(host, "images");
    const path = `/images/${digest.replace("sha256:", "")}`;
    const asked = request({ ...tls, ...at, path, agent: false, signal });
    asked.setTimeout(SILENCE_MS, () => asked.destroy(new Error(`nothing came for ${SILENCE_MS / 1000} s`)));
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        asked.once("response", resolve).once("error", reject).end();
      });
      if (response.statusCode === 404) return undefined;
      if (response.statusCode !== 200) throw new Error(`it answered with ${response.statusCode}`);
      return await receive(framesOf(response as AsyncIterable<Buffer>), rootfs);
    } finally {
      asked.destroy();
    }
  }

  async #answer({ url = "", method }: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, hex] = PATH.exec(url) ?? [];
    try {
      const image = hex !== undefined && method === "GET" ? await this.#find(`sha256:${hex}`) : undefined;
      if (image === undefined) return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": "application/octet-stream" });
      for await (const piece of piecesOf(image)) if (!response.write(piece)) await drained(response);
      response.end();
    } catch (error) {
      this.#options.log.warn({ image: hex }, `an image could not be sent to another host: ${messageOf(error)}`);
      response.destroy();
    }
  }
}

async function* piecesOf({ ref, config, rootfs }: Image): AsyncGenerator<Buffer> {
  yield frame(FRAMES.papers, Buffer.from(JSON.stringify({ ref, config } satisfies ElsewhereImage)));
  for await (const piece of createReadStream(rootfs, { highWaterMark: PIECE_BYTES }))
    yield frame(FRAMES.data, piece as Buffer);
  yield frame(FRAMES.end, Buffer.alloc(0));
}

/** Rejects when the other side is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) return reject(new Error("the other host hung up"));
    const done = () => {
      response.off("drain", done).off("close", done);
      if (response.destroyed) reject(new Error("the other host hung up"));
      else resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

async function receive(frames: AsyncGenerator<Frame, void>, rootfs: string): Promise<ElsewhereImage> {
  const { value: first } = await frames.next();
  if (first?.type !== FRAMES.papers) throw new Error("an image came without papers");
  const file = await open(rootfs, "w", 0o644);
  try {
    for await (const { type, payload } of frames) {
      if (type === FRAMES.data) await file.writeFile(payload);
      if (type !== FRAMES.end) continue;
      await file.sync();
      return JSON.parse(first.payload.toString("utf8")) as ElsewhereImage;
    }
  } finally {
    await file.close();
  }
  throw new Error("it broke off");
}
