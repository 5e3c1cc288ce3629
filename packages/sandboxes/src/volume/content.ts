/** The files of one volume, in the sandbox that has it. Every method rejects with a {@link Refusal}. */
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { Refusal } from "../failure.ts";
import { Files } from "../inside/files.ts";
import type { GuestTask, SandboxGuest } from "../inside/guest.ts";
import { MOST_LIST_BYTES, MOST_SAID_BYTES } from "../inside/limits.ts";
import { entriesIn, type VolumeEntry } from "./entry.ts";
import * as scripts from "./scripts.ts";

/** Numbers of a user and a group, and the mode of an entry. What is absent stays as it is. */
interface VolumeMetadata {
  uid?: number | undefined;
  gid?: number | undefined;
  mode?: number | undefined;
}

/** The longest path, in bytes: what Linux takes. */
const MOST_PATH_BYTES = 4_095;

export class VolumeContent {
  readonly #guest: SandboxGuest;
  readonly #root: string;
  readonly #signal: AbortSignal;

  /** `root`: where the guest has the volume mounted. */
  constructor(guest: SandboxGuest, root: string, signal: AbortSignal) {
    this.#guest = guest;
    this.#root = root;
    this.#signal = signal;
  }

  async stat(path: string): Promise<VolumeEntry> {
    return this.#entry(scripts.STAT, pathIn(path));
  }

  async list(path: string, depth: number): Promise<VolumeEntry[]> {
    const at = pathIn(path);
    const said = await this.#ask(scripts.LIST, at, [String(depth)], MOST_LIST_BYTES);
    const end = said.indexOf("\0");
    return entriesIn(said.slice(end + 1), said.slice(0, end), at);
  }

  /** With `force`, makes those above it, too, and does not mind when it is there. */
  async makeDirectory(path: string, force: boolean, metadata: VolumeMetadata): Promise<VolumeEntry> {
    const at = pathIn(path);
    const found = await this.#ask(scripts.MAY_MAKE, at, [flag(force)]);
    await (await this.#files()).makeDirectory(found);
    return this.change(at, metadata);
  }

  async change(path: string, { uid, gid, mode }: VolumeMetadata): Promise<VolumeEntry> {
    const numbers = [uid?.toString() ?? "", gid?.toString() ?? "", mode?.toString(8) ?? ""];
    return this.#entry(scripts.CHANGE, pathIn(path), numbers);
  }

  /** Returns the contents of a file. */
  async read(path: string): Promise<GuestTask> {
    const found = await this.#ask(scripts.FIND_FILE, pathIn(path), []);
    return (await this.#files()).read(found);
  }

  /** Makes a file of a stream, whole or not at all; in the place of another one with `force` only. */
  async write(path: string, source: Readable, force: boolean, metadata: VolumeMetadata): Promise<VolumeEntry> {
    const at = pathIn(path);
    const found = await this.#ask(scripts.MAY_WRITE, at, [flag(force)]);
    await (await this.#files()).write(found, source);
    return this.change(at, metadata);
  }

  /** Removes what is there, with all that is below. Rejects with 404 when nothing is. */
  async remove(path: string): Promise<void> {
    const found = await this.#ask(scripts.MAY_REMOVE, pathIn(path), []);
    await (await this.#files()).remove(found);
  }

  /** What is made belongs to the user as whom programs run. */
  async #files(): Promise<Files> {
    return new Files(this.#guest, { user: await this.#guest.user(undefined), signal: this.#signal });
  }

  async #entry(script: string, path: string, args: string[] = []): Promise<VolumeEntry> {
    const said = await this.#ask(script, path, args);
    const at = said.split("\0", 9)[8] ?? "";
    const [entry] = entriesIn(said, at, path);
    if (entry === undefined) throw new Refusal(502, "The sandbox says nothing of this file.");
    return entry;
  }

  async #ask(script: string, path: string, args: string[], most = MOST_SAID_BYTES): Promise<string> {
    const said = await this.#guest.tell(script, [this.#root, path, ...args], { most, signal: this.#signal });
    return said.toString("utf8");
  }
}

/** The path from the root of the volume: nothing leads above that. Throws 400 for what no path is. */
function pathIn(text: string): string {
  if (text.includes("\0") || Buffer.byteLength(text) > MOST_PATH_BYTES)
    throw new Refusal(400, `A path has no zero byte, and at most ${MOST_PATH_BYTES} bytes.`);
  const path = posix.normalize(`/${text}`);
  return path === "/" ? path : path.replace(/\/$/, "");
}

function flag(on: boolean): string {
  return on ? "1" : "";
}
