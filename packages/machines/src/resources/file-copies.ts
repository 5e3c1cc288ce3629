/** Files inside machines: what is at a path, and copies in both directions as tar archives. */
import type { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { type GuestCommand, GuestError, type TaskName } from "@hibernaut/guest";
import { copyFailure } from "../copy-failure.ts";
import type { Commands } from "./commands.ts";

/** What is at a path. */
interface PathInfo {
  kind: PathKind;
  /** What is behind a link, else the same as `kind`. Null for a link that leads nowhere. */
  leadsTo: PathKind | null;
  sizeBytes: number;
  mode: number;
  /** Without symbolic links. */
  path: string;
}

const KINDS = ["file", "directory", "link", "other"] as const;

type PathKind = (typeof KINDS)[number];

/** How many bytes of what a task says about its work are kept. It writes one line. */
const MAX_SAID = 16_384;

/**
 * Copies files. Every method throws like {@link Commands.run}, `not_found` for a path that does not exist,
 * `invalid_argument` for what cannot be copied, and `aborted` when the copy did not end.
 */
export class FileCopies {
  readonly #commands: Commands;

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  /** Returns what is at a path. */
  async stat(app: string, id: string, path: string): Promise<PathInfo> {
    const { command, ended } = this.#task(app, id, "stat", [path]);
    const [said] = await Promise.all([textOf(command.stdout), ended]);
    const [kind, leadsTo, size, mode = "", ...rest] = said.split("\n");
    return {
      kind: kindOf(kind),
      leadsTo: leadsTo === "none" ? null : kindOf(leadsTo),
      sizeBytes: numberOf(size),
      mode: numberOf(/^[0-7]{1,5}$/.test(mode) ? Number.parseInt(mode, 8) : undefined),
      path: rest.join("\n"),
    };
  }

  /** Returns the archive of a file or directory, once it has begun. The stream fails if the archive is not whole. */
  async read(app: string, id: string, path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { command, ended } = this.#task(app, id, "copy-out", [path]);
    signal.addEventListener("abort", () => command.kill());
    const chunks = (command.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    const first = await chunks.next();
    if (first.done) await ended;
    return whole(first, chunks, ended);
  }

  /** Unpacks an archive in a directory of the machine. Does not end the source when that fails early. */
  async write(
    app: string,
    id: string,
    { path, owner, source }: { path: string; owner: "image" | "archive"; source: Readable },
  ): Promise<{ entries: number; bytes: number }> {
    const { command, ended } = this.#task(app, id, "copy-in", [path, owner], true);
    const lost = () => {
      if (!source.readableEnded) command.kill("the client disconnected");
    };
    source.on("error", lost).on("close", lost);
    source.pipe(command.stdin);
    try {
      const [said] = await Promise.all([textOf(command.stdout), ended]);
      const [entries, bytes] = said.trim().split(" ");
      return { entries: numberOf(entries), bytes: numberOf(bytes) };
    } finally {
      source.unpipe(command.stdin);
      source.off("close", lost);
    }
  }

  #task(app: string, id: string, task: TaskName, args: string[], input = false) {
    const command = this.#commands.run(app, id, { task, args, input });
    const ended = succeeded(command);
    ended.catch(() => {}); // The caller looks at it when all output is read.
    return { command, ended };
  }
}

async function* whole(
  first: IteratorResult<Buffer>,
  rest: AsyncIterator<Buffer>,
  ended: Promise<void>,
): AsyncGenerator<Buffer, void> {
  for (let next = first; !next.done; next = await rest.next()) yield next.value;
  await ended;
}

/** Settles when the task has ended, and rejects with the reason unless it succeeded. */
async function succeeded(command: GuestCommand): Promise<void> {
  const said = textOf(command.stderr);
  try {
    const exit = await command.exit;
    if (exit.code !== 0 || exit.signal !== 0) throw copyFailure(exit, await said);
  } catch (error) {
    if (error instanceof GuestError)
      throw new HibernautError(
        "aborted",
        `The copy did not end: ${error.message}. Files that were copied are complete. Try again.`,
      );
    throw error;
  }
}

/** The text of an output, up to {@link MAX_SAID} bytes. */
async function textOf(output: Readable): Promise<string> {
  const kept: Buffer[] = [];
  let room = MAX_SAID;
  for await (const chunk of output as AsyncIterable<Buffer>) {
    kept.push(chunk.subarray(0, room));
    room -= kept.at(-1)?.length ?? 0;
  }
  return Buffer.concat(kept).toString("utf8");
}

/** What a guest says is believed only if it makes sense: an app may have taken over its machine. */
function kindOf(word: string | undefined): PathKind {
  const kind = KINDS.find((each) => each === word);
  if (kind === undefined) throw nonsense();
  return kind;
}

function numberOf(said: string | number | undefined): number {
  const value = said === undefined || said === "" ? Number.NaN : Number(said);
  if (!Number.isSafeInteger(value) || value < 0) throw nonsense();
  return value;
}

function nonsense(): HibernautError {
  const message = "The machine's agent gave an answer that makes no sense. Restart the machine, and try again.";
  return new HibernautError("aborted", message);
}
