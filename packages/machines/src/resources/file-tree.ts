/** Files inside machines: what is in a directory, directories that are made, and what is removed. */
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import { type AgentEntry, EntryFields, type FileTaskName, FsExit, GuestError } from "@hibernaut/guest";
import { askAgent, unfinished } from "./ask-agent.ts";
import type { Commands } from "./commands.ts";

/** How many bytes a list may have until it is cut, in bytes: some 10,000 entries, which is more than anyone reads. */
const MOST_LIST_BYTES = 1024 * 1024;
/** The same for everything else that a task says: one record, with a path of 4 KiB and attributes of 64 KiB. */
const MOST_SAID_BYTES = 256 * 1024;
/** How long a task may take, in milliseconds: a large tree takes long to remove, and Node's \`fetch\` gives up after 300 s. */
const TIMEOUT_MS = 280_000;
const WHEN_LATE = "Some of it may be done: list the directory, and try again.";

/** What the ends of tasks mean; others are `aborted`. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  [FsExit.notFound]: "not_found",
  [FsExit.refused]: "invalid_argument",
  [FsExit.exists]: "already_exists",
  [FsExit.notDirectory]: "invalid_argument",
  [FsExit.isDirectory]: "invalid_argument",
  [FsExit.noSpace]: "failed_precondition",
};
const NEXT: Readonly<Record<number, string>> = {
  [FsExit.notFound]: "Check the path in the machine.",
  [FsExit.noSpace]: "Remove some files in the machine, and try again.",
};

/** Which entries there are. `cut`: there are more. */
export interface FileList {
  entries: AgentEntry[];
  cut: boolean;
}

/**
 * Every method throws like {@link Commands.run}, `not_found` for a path that does not exist, `invalid_argument` for one that is
 * not acceptable, `aborted` when the machine did not finish, and `deadline_exceeded` after 280 s.
 */
export class FileTree {
  readonly #commands: Pick<Commands, "run">;
  readonly #timeoutMs: number;

  constructor(commands: Pick<Commands, "run">, { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {}) {
    this.#commands = commands;
    this.#timeoutMs = timeoutMs;
  }

  /** Lists what is below a directory, down to that depth: directories before what is in them, names in order. */
  async list(app: string, id: string, path: string, depth: number, signal: AbortSignal): Promise<FileList> {
    const { said, cut } = await this.#ask(app, id, "fs-list", [path, String(depth)], MOST_LIST_BYTES, signal);
    return entriesOf(said, cut);
  }

  /** Makes a directory and those that lead to it, for the image's user. Rejects with `already_exists` if it is there. */
  async makeDirectory(app: string, id: string, path: string, signal: AbortSignal): Promise<AgentEntry> {
    const { said, cut } = await this.#ask(app, id, "fs-mkdir", [path], MOST_SAID_BYTES, signal);
    const [entry] = entriesOf(said, cut).entries;
    if (entry === undefined) throw unfinished("its agent did not say what it made");
    return entry;
  }

  /** Removes a file, or a directory with all that is below. Links are not followed. */
  async remove(app: string, id: string, path: string, signal: AbortSignal): Promise<void> {
    await this.#ask(app, id, "fs-remove", [path], MOST_SAID_BYTES, signal);
  }

  async #ask(app: string, id: string, task: FileTaskName, args: string[], mostBytes: number, signal: AbortSignal) {
    const asked = { task, args, mostBytes, timeoutMs: this.#timeoutMs, whenLate: WHEN_LATE };
    const { said, cut, exit, why } = await askAgent(this.#commands, app, id, asked, signal);
    if (exit !== undefined && (exit.code !== FsExit.done || exit.signal !== 0)) throw refused(exit.code, why);
    return { said, cut };
  }
}

/** The whole entries of what was said; where it was cut, the last one is not. */
function entriesOf(said: Buffer, cut: boolean): FileList {
  const fields = new EntryFields(said);
  const entries: AgentEntry[] = [];
  try {
    while (fields.more) entries.push(fields.read());
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    if (!cut) throw unfinished(error.message);
  }
  return { entries, cut };
}

function refused(code: number, said: string): HibernautError {
  const next = NEXT[code] ?? "Nothing was changed.";
  const why = said.trim().replace(/\.$/, "") || `The task ended with ${code}`;
  return new HibernautError(CODES[code] ?? "aborted", `${why}. ${next}`);
}
