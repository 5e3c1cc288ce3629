/** Files in sandboxes: what is where, and what becomes of it. Every method rejects with a {@link Refusal}. */
import type { Readable } from "node:stream";
import { Refusal } from "../failure.ts";
import { Fields } from "./entry.ts";
import type { GuestTask, SandboxGuest } from "./guest.ts";
import type { EntryInfo, FilesystemEvent } from "./protocol/files_pb.js";
import { WatchReader } from "./watch-reader.ts";

/** Files of one sandbox, for one of its users. */
export class Files {
  readonly #guest: SandboxGuest;
  readonly #user: string | undefined;

  constructor(guest: SandboxGuest, user: string | undefined) {
    this.#guest = guest;
    this.#user = user;
  }

  async stat(path: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-stat", [path], this.#user)).entry();
  }

  async list(path: string, depth: number): Promise<EntryInfo[]> {
    const fields = new Fields(await this.#guest.ask("fs-list", [path, String(depth)], this.#user));
    const entries: EntryInfo[] = [];
    while (fields.more) entries.push(fields.entry());
    return entries;
  }

  async makeDirectory(path: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-mkdir", [path], this.#user)).entry();
  }

  async move(from: string, to: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-move", [from, to], this.#user)).entry();
  }

  /** What is not there is removed already. */
  async remove(path: string): Promise<void> {
    await this.#guest.ask("fs-remove", [path], this.#user).catch((error: unknown) => {
      if (!(error instanceof Refusal && error.status === 404)) throw error;
    });
  }

  async compose(sources: readonly string[], destination: string): Promise<EntryInfo> {
    return new Fields(await this.#guest.ask("fs-compose", [destination, ...sources], this.#user)).entry();
  }

  /** Returns the contents of a regular file. */
  read(path: string): GuestTask {
    return this.#guest.begin("fs-read", [path], { user: this.#user });
  }

  /** Makes a file of a stream: whole, or not at all. Existing contents are replaced. */
  async write(path: string, source: Readable, metadata: Record<string, string> = {}): Promise<EntryInfo> {
    const args = [path, ...Object.entries(metadata).flat()];
    const { command, ended } = this.#guest.begin("fs-write", args, { user: this.#user, input: true });
    const lost = () => {
      if (!source.readableEnded) command.kill("the client disconnected");
    };
    source.on("error", lost).on("close", lost);
    source.pipe(command.stdin);
    const said: Buffer[] = [];
    command.stdout.on("data", (chunk: Buffer) => said.push(chunk));
    try {
      await ended;
      return new Fields(Buffer.concat(said)).entry();
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
    signal: AbortSignal,
  ): Promise<AsyncGenerator<FilesystemEvent, void>> {
    const flag = (on: boolean) => (on ? "1" : "0");
    const args = [path, flag(recursive), flag(entries)];
    const { command, ended } = this.#guest.begin("fs-watch", args, { user: this.#user, input: true }); // it ends with its input
    const end = () => command.kill("nobody watches any more");
    signal.addEventListener("abort", end, { once: true });
    command.exit.catch(() => {}).finally(() => signal.removeEventListener("abort", end));
    const reader = new WatchReader(command.stdout);
    const established = await reader.start();
    if (!established) {
      await ended;
      throw new Refusal(500, "The watch ended before it began.");
    }
    return reader.events();
  }
}
