/**
 * One machine on its way to another host, in one request. It begins while the machine may still run, with its memory
 * (pre-copy). Once the machine rests, what has changed since follows, and then everything else.
 */
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { VolumePapers, VolumeTravel } from "@hibernaut/volumes";
import type { WarnLog } from "../ownership/retry.ts";
import type { PeerCall } from "../peer-call.ts";
import type { SentMemory } from "./arriving-memory.ts";
import { compression, FRAMES, frame, header } from "./frames.ts";
import { type Changes, changedPieces, NO_PIECES, PieceSums } from "./memory-pieces.ts";
import { filesOf, memoryOf, pack } from "./pack.ts";
import type { TravelPapers } from "./papers.ts";
import type { Rate } from "./rate.ts";

/** How often the memory of a guest that runs is sent at most. A guest that writes to all of it again and again never ends. */
const MOST_ROUNDS = 4;
/** What is sent in a few seconds is not worth another round: little of it changes meanwhile. Bytes. */
const LITTLE_BYTES = 256 * 1024 * 1024;
/**
 * How often a host that waits for the rest hears that this one is still there, in milliseconds. It gives up after 120 s, and a
 * machine may take longer to come to rest.
 */
const SIGN_OF_LIFE_MS = 20_000;

/** What is sent once the machine rests. */
export interface Cargo {
  record: MachineRecord;
  epoch: number;
  attempt: string;
  history: TravelPapers["history"];
  volumes: VolumePapers[];
}

interface ShipmentOptions {
  id: string;
  to: string;
  from: string;
  call: PeerCall;
  /** Directory of the machine's files. */
  folder: string;
  /** Of what is there, which file holds the memory before the machine rests. Undefined: nothing is sent before. */
  memory: string | undefined;
  volumes: Pick<VolumeTravel, "root" | "paths">;
  rate: Rate;
  log: WarnLog;
  /** How far it is: bytes that were read, of about how many. */
  tell(step: "precopy" | "copy" | "commit", bytes: number, totalBytes: number): void;
}

export class Shipment implements Disposable {
  readonly #options: ShipmentOptions;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #sums = new PieceSums();
  readonly #compression = compression();
  readonly #precopied = Promise.withResolvers<void>();
  readonly #broken = new AbortController();
  readonly #cargo = Promise.withResolvers<Cargo>();
  readonly #answer: Promise<unknown>;

  /** Begins. */
  constructor(options: ShipmentOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = AbortSignal.any([signal, this.#over.signal]);
    const { call, to, id } = options;
    this.#answer = call(to, `/moves/${id}`, { bytes: this.#sent() }, this.#signal);
    this.#answer.catch((error: Error) => {
      this.#precopied.reject(error);
      this.#broken.abort(error);
    });
    this.#precopied.promise.catch(() => {}); // a shipment may be over before anybody asks
  }

  /** Resolves when the other host has nearly all of the memory. Rejects with why it cannot be sent there. */
  get precopied(): Promise<void> {
    return this.#precopied.promise;
  }

  /** Aborted with the reason when it cannot be sent there after all. */
  get broken(): AbortSignal {
    return this.#broken.signal;
  }

  /** Sends the rest. Resolves when the other host says that the machine is its own. */
  async send(cargo: Cargo): Promise<void> {
    this.#cargo.resolve(cargo);
    await this.#answer;
  }

  /** Ends it, unless it has ended. */
  [Symbol.dispose](): void {
    this.#over.abort(new Error("the move has ended"));
    this.#compression.destroy();
  }

  async *#sent(): AsyncGenerator<Buffer, void> {
    const stream = this.#compression;
    const fed = this.#feed().catch((error: Error) => void stream.destroy(error));
    for await (const piece of stream as AsyncIterable<Buffer>) {
      await this.#options.rate.take(piece.length, this.#signal);
      yield piece;
    }
    await fed;
  }

  async #feed(): Promise<void> {
    for await (const bytes of this.#frames()) await writeTo(this.#compression, bytes, this.#signal);
    this.#compression.end();
  }

  async *#frames(): AsyncGenerator<Buffer, void> {
    const { id, to, from, folder, volumes: travel, tell, log } = this.#options;
    try {
      // The request begins with its first byte, and the other host does not wait long for that.
      yield* this.#signOfLife();
      yield* this.#precopy();
      this.#precopied.resolve();
      const { record, volumes, ...cargo } = yield* this.#awaitCargo();
      const papers: TravelPapers = { ...cargo, record: { ...record, epoch: cargo.epoch }, taken: null, from, volumes };
      yield frame(FRAMES.papers, Buffer.from(JSON.stringify(papers)));
      const memory = memoryOf(record);
      const { paths, bytes } = await filesOf(folder, record);
      const ofVolumes = travel.paths(volumes);
      const totalBytes = volumes.reduce((sum, each) => sum + each.bytes, bytes);
      let read = 0;
      const onBytes = (count: number) => {
        read += count;
        tell("copy", Math.min(read, totalBytes), totalBytes);
      };
      const sent = memory !== undefined && paths.includes(memory) ? yield* this.#memory(memory, onBytes) : undefined;
      const parts = [
        { folder, paths: paths.filter((path) => path !== memory) },
        { folder: travel.root, paths: ofVolumes },
      ];
      for await (const piece of pack(parts, { signal: this.#signal, onBytes })) yield frame(FRAMES.data, piece);
      tell("commit", totalBytes, totalBytes);
      const end = { files: paths.length + ofVolumes.length, memory: sent };
      yield frame(FRAMES.end, Buffer.from(JSON.stringify(end)));
    } catch (error) {
      this.#signal.throwIfAborted();
      const reason = messageOf(error);
      log.warn({ machine: id, host: to, reason }, "the files of a machine cannot be sent");
      const why = `The files of machine ${id} cannot be sent: ${reason}. See the log of host ${from}, and its disk.`;
      throw new HibernautError("unavailable", why, { machine_id: id }, { cause: error });
    }
  }

  /** Sends the memory as it is at the moment, again and again as long as less and less has changed. */
  async *#precopy(): AsyncGenerator<Buffer, void> {
    const { folder, memory, tell } = this.#options;
    if (memory === undefined) return;
    await using file = await openIfThere(join(folder, memory));
    if (file === undefined) return;
    const { size } = await file.stat();
    tell("precopy", 0, size);
    let read = 0;
    for (const sent: number[] = []; worthAnother(sent); ) {
      const total = (sent.length + 1) * size;
      const onBytes = (bytes: number) => tell("precopy", (read += bytes), total);
      sent.push((yield* this.#changed(file, onBytes)).changed);
    }
  }

  async *#awaitCargo(): AsyncGenerator<Buffer, Cargo> {
    for (;;) {
      const waiting = new AbortController();
      const signal = AbortSignal.any([this.#signal, waiting.signal]);
      try {
        const cargo = await Promise.race([this.#cargo.promise, delay(SIGN_OF_LIFE_MS, undefined, { signal })]);
        if (cargo !== undefined) return cargo;
      } finally {
        waiting.abort();
      }
      yield* this.#signOfLife();
    }
  }

  async *#signOfLife(): AsyncGenerator<Buffer, void> {
    yield frame(FRAMES.memory, NO_PIECES);
    this.#compression.flush();
  }

  /** Sends what the other host does not have of the memory. */
  async *#memory(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer, SentMemory> {
    await using file = await open(join(this.#options.folder, path));
    const { read } = yield* this.#changed(file, onBytes);
    const { size } = await file.stat();
    if (read !== size) throw new Error(`${read} of ${size} bytes of its memory could be read`);
    return { bytes: size, sum: this.#sums.total(size) };
  }

  async *#changed(file: FileHandle, onBytes: (bytes: number) => void): AsyncGenerator<Buffer, Changes> {
    const batches = changedPieces(file, this.#sums, { signal: this.#signal, onBytes });
    for (;;) {
      const { done, value } = await batches.next();
      if (done) return value;
      yield header(FRAMES.memory, value);
      yield value;
      if (value === NO_PIECES) this.#compression.flush();
    }
  }
}

/** Whether the memory should be sent once more before the guest is suspended, after what was sent each time, in bytes. Pure. */
export function worthAnother(sent: readonly number[]): boolean {
  const last = sent.at(-1);
  if (last === undefined) return true;
  const before = sent.at(-2) ?? Number.POSITIVE_INFINITY;
  return sent.length < MOST_ROUNDS && last > LITTLE_BYTES && last < before / 2;
}

/** A machine that starts or ends at the moment takes its memory along. */
async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Resolves when the stream needs the bytes no more. Rejects with its error, and with the signal's reason. */
export function writeTo(stream: Writable, bytes: Buffer, signal: AbortSignal): Promise<void> {
  const written = new Promise<void>((resolve, reject) => {
    stream.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
  return abortable(written, signal);
}
