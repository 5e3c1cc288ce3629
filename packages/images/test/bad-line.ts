/** A proxy in front of a registry that can be slow, break, lie and redirect. It counts what it passes on. */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** What to do to a reply. What is absent is not changed. */
export interface Mischief {
  /** Break the connection after this many bytes of the body. */
  cutAfter?: number;
  /** Wait this many milliseconds after every piece of up to 64 KiB. */
  slowMs?: number;
  /** Change the first byte. */
  damaged?: boolean;
  /** Pass nothing on, and reply with this status. */
  status?: number;
  headers?: Record<string, string>;
  /** Headers of that reply. */
  body?: string;
  /** Hide the range from the registry. */
  ignoreRange?: boolean;
}

/** One request, and how it was answered. */
export interface Served {
  path: string;
  headers: IncomingMessage["headers"];
  status: number;
  bytes: number;
  /** Bytes of the reply that have not been passed on. 0 means that the client has everything it waits for. */
  left: number;
}

export interface BadLine {
  /** `127.0.0.1:port`, to be used in place of the registry. */
  host: string;
  served: Served[];
  /** Bytes of blobs that were passed on, by digest. */
  blobBytes(): Map<string, number>;
  /** The largest number of replies with blobs at one time. */
  mostAtOnce(): number;
  /** The current number of such replies. */
  underWay(): number;
  close(): Promise<void>;
}

const PIECE = 64 * 1024;

/** Opens a proxy to `target`, a `host:port`. */
export async function openBadLine(
  target: string,
  mischief: (request: IncomingMessage, number: number) => Mischief = () => ({}),
): Promise<BadLine> {
  const served: Served[] = [];
  let atOnce = 0;
  let most = 0;
  const server = createServer((incoming, reply) => {
    const path = incoming.url ?? "";
    const isBlob = path.includes("/blobs/");
    const note: Served = { path, headers: incoming.headers, status: 0, bytes: 0, left: Number.POSITIVE_INFINITY };
    const number = served.filter((other) => other.path === path).length;
    served.push(note);
    const tricks = mischief(incoming, number);
    if (tricks.status !== undefined) {
      note.status = tricks.status;
      note.left = 0;
      reply.writeHead(tricks.status, tricks.headers).end(tricks.body ?? "");
      return;
    }
    if (isBlob) {
      atOnce += 1;
      most = Math.max(most, served.filter((other) => other.path.includes("/blobs/") && other.left > 0).length);
    }
    reply.once("close", () => {
      if (isBlob) atOnce -= 1;
      note.left = 0;
    });
    const { host: _, range, ...headers } = incoming.headers;
    const passed = { ...headers, ...(range !== undefined && !tricks.ignoreRange && { range }) };
    const onward = request(`http://${target}${path}`, { headers: passed }, (response) => {
      note.status = response.statusCode ?? 0;
      note.left = Number(response.headers["content-length"] ?? Number.POSITIVE_INFINITY);
      reply.writeHead(note.status, response.headers);
      void pass(response, reply, note, tricks);
    });
    onward.on("error", () => reply.destroy());
    reply.on("close", () => onward.destroy());
    onward.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    blobBytes() {
      const bytes = new Map<string, number>();
      for (const { path, bytes: count } of served) {
        const digest = /\/blobs\/(sha256:[0-9a-f]{64})/.exec(path)?.[1];
        if (digest) bytes.set(digest, (bytes.get(digest) ?? 0) + count);
      }
      return bytes;
    },
    mostAtOnce: () => most,
    underWay: () => atOnce,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function pass(from: IncomingMessage, to: ServerResponse, note: Served, tricks: Mischief): Promise<void> {
  const { cutAfter = Number.POSITIVE_INFINITY, slowMs, damaged = false } = tricks;
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += PIECE) {
        const piece = Buffer.from(chunk.subarray(at, at + PIECE)).subarray(0, Math.max(0, cutAfter - note.bytes));
        if (damaged && note.bytes === 0 && piece.length > 0) piece[0] = (piece[0] ?? 0) ^ 0xff;
        note.left -= piece.length;
        await new Promise<void>((resolve, reject) => to.write(piece, (error) => (error ? reject(error) : resolve())));
        note.bytes += piece.length;
        if (note.bytes >= cutAfter) return void to.destroy();
        if (slowMs !== undefined) await delay(slowMs);
      }
    }
    to.end();
  } catch {
    to.destroy(); // one of both ends is gone
  }
}
