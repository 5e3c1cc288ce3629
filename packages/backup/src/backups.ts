/** Online backups: the implementation of {@link BackupService}. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import { Archive } from "./archive.ts";
import { type BackupParts, Content } from "./content.ts";
import type { BackupService, BackupView } from "./contract.ts";
import type { Piece } from "./piece.ts";
import { Stage } from "./stage.ts";
import type { Log } from "./targets/work.ts";

interface BackupsOptions extends BackupParts {
  /** Throws when nothing may be copied now. By default, it may. */
  refuse?(): void;
  log: Log;
}

/** What is done with the pieces of a backup. */
interface PieceTaker {
  take(piece: Piece, signal: AbortSignal): Promise<void>;
  finish(signal: AbortSignal): Promise<void>;
  signal: AbortSignal;
}

const NONE: BackupView = {
  state: "none",
  startedAt: null,
  endedAt: null,
  machinesDone: 0,
  machines: 0,
  bytes: 0,
  longestPauseMs: 0,
  withoutMemory: [],
  failedCommands: [],
  error: null,
};

/** The backups of one data directory. */
export class Backups implements BackupService {
  readonly #options: BackupsOptions;
  readonly #stage: Stage;
  readonly #closing = new AbortController();
  #view: BackupView = NONE;
  #work: Promise<void> = Promise.resolve();

  constructor(options: BackupsOptions) {
    this.#options = options;
    this.#stage = new Stage(options.dataDir);
  }

  /** Deletes what a platform that was killed left. Call it once, before anything else. */
  async recover(): Promise<void> {
    await this.#clean();
  }

  get(): BackupView {
    return this.#view;
  }

  create(signal: AbortSignal): AsyncIterable<Buffer> {
    this.#refuseSecond();
    return this.#write(AbortSignal.any([signal, this.#closing.signal]));
  }

  /** Ends a backup that is being made, and waits until its machines run on. */
  async close(): Promise<void> {
    this.#closing.abort(new HibernautError("unavailable", "The platform is shutting down. Back up again later."));
    await this.#work;
  }

  /**
   * Makes a backup and gives its pieces to `take`, one after the other. `finish` is a part of it: the backup is complete when
   * that has resolved. Rejects with `failed_precondition` while another backup is made.
   */
  async each({ take, finish, signal }: PieceTaker): Promise<BackupView> {
    const all = AbortSignal.any([signal, this.#closing.signal]);
    const making = this.#make(all, {
      lends: true,
      piece: (piece) => silently(take(piece, all)),
      end: () => silently(finish(all)),
    });
    for await (const nothing of making) throw new Error(`a piece became ${String(nothing)}`);
    return this.#view;
  }

  #write(signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const archive = new Archive();
    const report = (bytes: number) => void (this.#view = { ...this.#view, bytes });
    const { folder } = this.#stage;
    return this.#make(signal, {
      // What was written into an archive cannot be taken back.
      lends: false,
      async *piece(piece) {
        for await (const chunk of archive.add(piece, signal)) {
          report(archive.bytes);
          yield chunk;
        }
      },
      end: () => archive.end(folder, signal),
    });
  }

  /** Makes a backup, and yields what becomes of its pieces and of its end. */
  async *#make<T>(
    signal: AbortSignal,
    use: { lends: boolean; piece(piece: Piece): AsyncGenerator<T, void>; end(): AsyncGenerator<T, void> },
  ): AsyncGenerator<T, void> {
    this.#refuseSecond();
    const done = Promise.withResolvers<void>();
    this.#work = done.promise;
    this.#view = { ...NONE, state: "running", startedAt: new Date().toISOString() };
    const content = new Content(this.#options, this.#stage, use.lends, (progress) => {
      this.#view = { ...this.#view, ...progress };
    });
    let error: unknown = new HibernautError("aborted", "The client went away before the backup was whole.");
    try {
      for await (const piece of content.pieces(signal)) yield* use.piece(piece);
      yield* use.end();
      error = undefined;
    } catch (thrown) {
      error = signal.aborted ? signal.reason : this.#explained(thrown);
      throw error;
    } finally {
      await this.#clean();
      this.#ended(error);
      done.resolve();
    }
  }

  #explained(error: unknown): unknown {
    if (error instanceof HibernautError) return error;
    return new HibernautError(
      "unavailable",
      `The backup failed: ${messageOf(error)}. Make sure that the disk of ${this.#stage.folder} has space, then back up again.`,
    );
  }

  /** What cannot be deleted takes space, and is no reason not to start. */
  async #clean(): Promise<void> {
    const { folder } = this.#stage;
    await this.#stage.remove().catch((error: unknown) => {
      this.#options.log.warn({ folder, reason: messageOf(error) }, "what a backup left cannot be deleted");
    });
  }

  #ended(error: unknown): void {
    const { log } = this.#options;
    const code = error instanceof HibernautError ? error.code : "internal";
    this.#view = {
      ...this.#view,
      state: error === undefined ? "complete" : "failed",
      endedAt: new Date().toISOString(),
      error: error === undefined ? null : { code, message: messageOf(error) },
    };
    const { machines, bytes, longestPauseMs } = this.#view;
    if (error === undefined) log.info({ machines, bytes, longestPauseMs }, "a backup was made");
    else log.warn({ reason: messageOf(error), bytes }, "a backup failed");
  }

  #refuseSecond(): void {
    this.#options.refuse?.();
    if (this.#view.state !== "running") return;
    throw new HibernautError(
      "failed_precondition",
      `A backup is being made since ${this.#view.startedAt}. Wait until it is done, then back up again.`,
    );
  }
}

/** Yields nothing, and ends with the work. */
async function* silently(work: Promise<void>): AsyncGenerator<never, void> {
  await work;
  yield* [];
}
