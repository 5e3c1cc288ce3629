/**
 * The server's side of NBD as far as QEMU needs it to write somewhere, and to read what it has written.
 * https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
 */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

const NBDMAGIC = 0x4e42444d41474943n;
const IHAVEOPT = 0x49484156454f5054n;
const OPTION_REPLY = 0x0003e889045565a9n;
const REQUEST = 0x25609513;
const SIMPLE_REPLY = 0x67446698;

/** The client may ask for options, and does not want the padding of old times. */
const FIXED_NEWSTYLE_NO_ZEROES = 0b11;
const OPTION = { abort: 2, info: 6, go: 7 };
const REPLY = { ack: 1, info: 3, unsupported: 2 ** 31 + 1 };
/** The export has flags, and takes flushes and zeros. */
const EXPORT_FLAGS = 1 | 4 | 64;
const COMMAND = { read: 0, write: 1, disconnect: 2, flush: 3, zeroes: 6 };
/** The error of a request that makes no sense, as Linux numbers it. */
const EINVAL = 22;
/** The error of a request that took too long. */
const EIO = 5;
/**
 * How long a request may take, in milliseconds: less than QEMU waits for it. One that QEMU still has an open request of, it
 * neither reads nor takes away, and its guest waits while it is asked to.
 */
const ANSWER_MS = 3_000;

const HEADER_BYTES = 28;
/** QEMU sends at most 32 MB in one write. */
const MOST_BYTES = 33 * 1024 * 1024;
/** Options are names and short lists. */
const MOST_OPTION_BYTES = 4096;

/** What is behind an export. A rejection is told to the client as the error of its request. */
export interface NbdExport {
  /** Its size in bytes. */
  bytes: number;
  read(offset: number, length: number): Promise<Buffer>;
  write(offset: number, content: Buffer): Promise<void>;
  zero(offset: number, length: number): Promise<void>;
}

/** What an export rejects with, to say which error of Linux the client gets. */
export class NbdError extends Error {
  readonly errno: number;

  constructor(errno: number, message: string) {
    super(message);
    this.errno = errno;
  }
}

/** Reads a stream in portions. */
class Reader {
  readonly #chunks: AsyncIterator<Buffer, undefined>;
  /** What has arrived beyond what was read. */
  #held: Buffer = Buffer.alloc(0);

  constructor(stream: Duplex) {
    this.#chunks = (stream as AsyncIterable<Buffer, undefined>)[Symbol.asyncIterator]();
  }

  /** Undefined when the stream ends before. */
  async read(bytes: number): Promise<Buffer | undefined> {
    // As large as what is read, and no more, however small the parts are in which it arrives.
    const all = Buffer.allocUnsafe(bytes);
    for (let at = 0; ; ) {
      const taken = this.#held.copy(all, at);
      this.#held = this.#held.subarray(taken);
      at += taken;
      if (at === bytes) return all;
      const next = await this.#chunks.next();
      if (next.done === true) return undefined;
      this.#held = next.value;
    }
  }
}

/**
 * Serves one client until it disconnects, or breaks the protocol. `find` returns the export of a name. Rejects with the stream's
 * error.
 */
export async function serveNbd(stream: Duplex, find: (name: string) => NbdExport | undefined): Promise<void> {
  const reader = new Reader(stream);
  const chosen = await greet(reader, stream, find);
  if (chosen === undefined) return;
  for (;;) {
    const header = await reader.read(HEADER_BYTES);
    if (header === undefined || header.readUInt32BE(0) !== REQUEST) return;
    const type = header.readUInt16BE(6);
    const [offset, length] = [Number(header.readBigUInt64BE(16)), header.readUInt32BE(24)];
    const carries = type === COMMAND.write || type === COMMAND.read;
    if (type === COMMAND.disconnect || (carries && length > MOST_BYTES)) return;
    const content = type === COMMAND.write ? await arrived(stream, reader.read(length)) : undefined;
    if (type === COMMAND.write && content === undefined) return;
    const { errno = 0, data } = await inTime(answer(chosen, { type, offset, length, content }));
    const reply = Buffer.alloc(16);
    reply.writeUInt32BE(SIMPLE_REPLY, 0);
    reply.writeUInt32BE(errno, 4);
    header.copy(reply, 8, 8, 16);
    const taken = stream.write(data === undefined ? reply : Buffer.concat([reply, data]));
    if (!taken) await Promise.race([once(stream, "drain"), once(stream, "close")]);
  }
}

interface Request {
  type: number;
  offset: number;
  length: number;
  content: Buffer | undefined;
}

interface Answer {
  errno?: number;
  data?: Buffer;
}

async function answer(chosen: NbdExport, { type, offset, length, content }: Request): Promise<Answer> {
  if (type === COMMAND.flush) return {};
  if (offset + length > chosen.bytes) return { errno: EINVAL };
  try {
    if (type === COMMAND.read) return { data: await chosen.read(offset, length) };
    if (type === COMMAND.zeroes) await chosen.zero(offset, length);
    else if (content !== undefined) await chosen.write(offset, content);
    else return { errno: EINVAL };
    return {};
  } catch (error) {
    return { errno: error instanceof NbdError ? error.errno : EINVAL };
  }
}

/** A request that has begun arrives at once, or its connection ends: a QEMU that a guest has taken over may take its time. */
async function arrived<T>(stream: Duplex, reading: Promise<T>): Promise<T> {
  const late = setTimeout(() => stream.destroy(new Error("a request of QEMU did not arrive")), ANSWER_MS);
  try {
    return await reading;
  } finally {
    clearTimeout(late);
  }
}

async function inTime(answered: Promise<Answer>): Promise<Answer> {
  const done = new AbortController();
  const late = delay(ANSWER_MS, { errno: EIO }, { signal: done.signal }).catch((): Answer => ({}));
  try {
    return await Promise.race([answered, late]);
  } finally {
    done.abort();
  }
}

/** Resolves with the export that the client has chosen. Undefined when it goes without one. */
async function greet(
  reader: Reader,
  stream: Duplex,
  find: (name: string) => NbdExport | undefined,
): Promise<NbdExport | undefined> {
  const hello = Buffer.alloc(18);
  hello.writeBigUInt64BE(NBDMAGIC, 0);
  hello.writeBigUInt64BE(IHAVEOPT, 8);
  hello.writeUInt16BE(FIXED_NEWSTYLE_NO_ZEROES, 16);
  stream.write(hello);
  if ((await reader.read(4)) === undefined) return undefined;
  for (;;) {
    const header = await reader.read(16);
    if (header === undefined || header.readBigUInt64BE(0) !== IHAVEOPT) return undefined;
    const [option, length] = [header.readUInt32BE(8), header.readUInt32BE(12)];
    const data = length > MOST_OPTION_BYTES ? undefined : await reader.read(length);
    if (data === undefined || option === OPTION.abort) return undefined;
    const chosen = option === OPTION.go || option === OPTION.info ? find(nameIn(data)) : undefined;
    if (chosen !== undefined)
      stream.write(optionReply(option, REPLY.info, Buffer.concat([Buffer.alloc(2), describe(chosen.bytes)])));
    stream.write(optionReply(option, chosen === undefined ? REPLY.unsupported : REPLY.ack));
    if (option === OPTION.go && chosen !== undefined) return chosen;
  }
}

/** The name of an export, with its length before it. */
function nameIn(data: Buffer): string {
  return data.length < 4 ? "" : data.toString("utf8", 4, 4 + data.readUInt32BE(0));
}

function describe(bytes: number): Buffer {
  const about = Buffer.alloc(10);
  about.writeBigUInt64BE(BigInt(bytes), 0);
  about.writeUInt16BE(EXPORT_FLAGS, 8);
  return about;
}

function optionReply(option: number, type: number, data: Buffer = Buffer.alloc(0)): Buffer {
  const reply = Buffer.alloc(20);
  reply.writeBigUInt64BE(OPTION_REPLY, 0);
  reply.writeUInt32BE(option, 8);
  reply.writeUInt32BE(type, 12);
  reply.writeUInt32BE(data.length, 16);
  return Buffer.concat([reply, data]);
}
