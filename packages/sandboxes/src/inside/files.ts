/** Files in sandboxes: what is where, and what becomes of it. Every method rejects with a {@link Refusal}. */
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { ifRefused, Refusal } from "../failure.ts";
import { Fields } from "./entry.ts";
import { type GuestTask, type SandboxGuest, saidBy } from "./guest.ts";
import { MOST_SAID_BYTES } from "./limits.ts";
import type { EntryInfo } from "./protocol/files_pb.ts";
import { type WatchedEvent, WatchReader } from "./watch-reader.ts";

/** Files of one sandbox, for one request of one of its users. What is under way ends with the signal. */
export class Files {
  readonly #guest: SandboxGuest;
  readonly #options: { user: string | undefined; signal: AbortSignal };
  readonly #workdir: string | undefined;

  /** `workdir`: the directory that relative paths belong to. By default, the user's home. */
  constructor(
    guest: SandboxGuest,
    { workdir, ...options }: { user: string | undefined; workdir?: string | undefined; signal: AbortSignal },
  ) {
    this.#guest = guest;
    this.#options = options;
    this.#workdir = workdir;
  }

  #at(path: string): string {
    return this.#workdir === undefined ? path : posix.resolve(this.#workdir, path);
  }

  async stat(path: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-stat", [this.#at(path)], this.#options)).entry();
  }

  /** Undefined where nothing is there. */
  async statIfThere(path: string): Promise<EntryInfo | undefined> {
    return this.stat(path).catch(ifRefused(404));
  }

  async list(path: string, depth: number): Promise<EntryInfo[]> {
    const fields = new Fields(await this.#guest.ask("fs-list", [this.#at(path), String(depth)], this.#options));
    const entries: EntryInfo[] = [];
    while (fields.more) entries.push(fields.entry());
    return entries;
  }

  async makeDirectory(path: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-mkdir", [this.#at(path)], this.#options)).entry();
  }

  async move(from: string, to: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-move", [this.#at(from), this.#at(to)], this.#options)).entry();
  }

  /** What is not there is removed already. */
  async remove(path: string): Promise<void> {
    await this.#guest.ask("fs-remove", [this.#at(path)], this.#options).catch(ifRefused(404));
  }

  async compose(sources: readonly string[], destination: string): Promise<EntryInfo> {
    return new Fields(
      await this.#guest.ask(
        "fs-compose",
        [destination, ...sources].map((path) => this.#at(path)),
        this.#options,
      ),
    ).entry();
  }

  /** Returns the contents of a regular file. */
  read(path: string): GuestTask {
    return this.#guest.begin("fs-read", [this.#at(path)], this.#options);
  }

  /** Makes a file of a stream: whole, or not at all. Existing contents are replaced. */
  async write(path: string, source: Readable, metadata: Record<string, string> = {}): Promise<EntryInfo> {
    if (source.destroyed && !source.readableEnded) throw new Refusal(499, "The client is gone.");
    const args = [this.#at(path), ...Object.entries(metadata).flat()];
    const { command, ended } = this.#guest.begin("fs-write", args, { ...this.#options, input: true });
    const lost = () => {
      if (!source.readableEnded) command.kill("the client disconnected");
    };
    source.on("error", lost).on("close", lost);
    source.pipe(command.stdin);
    try {
      const said = await saidBy(command, MOST_SAID_BYTES);
      await ended;
      return new Fields(said).entry();
    } finally {
      source.unpipe(command.stdin);
      source.off("close", lost);
      source.resume(); // what a task that failed did not take
    }
  }

  /** Returns what happens in a directory from now on, until the signal is aborted or the directory is gone. */
  async watch(
    path: string,
    { recursive, entries }: { recursive: boolean; entries: boolean },
    signal = this.#options.signal,
  ): Promise<AsyncGenerator<WatchedEvent, void>> {
    const flag = (on: boolean) => (on ? "1" : "0");
    const args = [this.#at(path), flag(recursive), flag(entries)];
    // It ends with its input.
    const { command, ended } = this.#guest.begin("fs-watch", args, { ...this.#options, signal, input: true });
    const reader = new WatchReader(command.stdout);
    if (await reader.start()) return until(reader.events(), () => command.kill());
    await ended;
    command.kill("its first word makes no sense");
    throw new Refusal(502, "The watch ended before it began.");
  }
}

/** Passes events on, and calls `end` whenever that is over. */
async function* until<T>(events: AsyncIterable<T>, end: () => void): AsyncGenerator<T, void> {
  try {
    yield* events;
  } finally {
    end();
  }
}
