/** A sandbox that a program keeps, and what the program believes of it. */
import type { Sandbox } from "e2b";
import { type CountBelief, type FileBelief, fileOf, flushed, lost, mayBeLost } from "./beliefs.ts";
import type { World } from "./world.ts";

/** In the home of the user. The last one has a number in it. */
export const PATHS = ["notes.txt", "work/deep/result.json", "count"] as const;
export const COUNT = "count";

/** A program that counts lines in its memory. */
interface Keeper {
  pid: number;
  secret: string;
  count: CountBelief;
}

export class Kept {
  sandbox: Sandbox;
  /** What its client knows of it. */
  state: "running" | "paused" | "unsure" = "running";
  /** Whether a `kill` has failed. */
  mayBeGone = false;
  /** Its virtual machine was killed, and nobody has looked since. */
  struck = false;
  /** A command may still run whose client has lost it. */
  unsettled = false;
  /** The kernel's name for this boot. */
  boot: string | undefined;
  files: Map<string, FileBelief> = new Map(PATHS.map((path) => [path, fileOf(null)]));
  keeper: Keeper | undefined;
  wakes = false;
  /** Within these times it ends, in milliseconds since 1970. */
  ends: { least: number; most: number } | undefined;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  get id(): string {
    return this.sandbox.sandboxId;
  }

  file(path: string): FileBelief {
    const file = this.files.get(path);
    if (file === undefined) throw new Error(`nobody knows ${path}`);
    return this.struck ? mayBeLost(file) : file;
  }

  /** Call it before and after its virtual machine is killed: one that is paused needs none. */
  strike(): void {
    if (this.state !== "paused") this.struck = true;
  }

  /** Everything that was written until now is on its disk. */
  flush(): void {
    if (this.struck) return;
    for (const [path, file] of this.files) this.files.set(path, flushed(file));
  }

  lose(): void {
    this.keeper = undefined;
    for (const [path, file] of this.files) this.files.set(path, lost(file));
  }

  /** What one has that was born from this one just now. */
  heir(sandbox: Sandbox): Kept {
    const child = new Kept(sandbox);
    child.struck = this.struck;
    child.unsettled = this.unsettled;
    child.wakes = this.wakes;
    child.files = new Map(this.files);
    child.keeper = this.keeper && { ...this.keeper };
    return child;
  }
}

const BOOT = "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid";

/** Looks whether its virtual machine is the one from before. Resolves with whether everything is known again. */
export async function look(world: World, kept: Kept): Promise<boolean> {
  const { id } = kept;
  const began = performance.now();
  const done = await world.attempt("look", () => kept.sandbox.commands.run(BOOT), id);
  if (done === undefined || world.faults.struck(began, id)) return false;
  const [boot = "", random = ""] = done.value.stdout.split("\n");
  world.unique(`random number ${random}`);
  if (boot !== kept.boot) {
    world.unique(`boot ${boot}`);
    if (kept.boot !== undefined && !kept.struck) world.wrong(`${id} has lost its memory, and nobody killed it`);
    if (kept.boot !== undefined) kept.lose();
    else if (kept.struck) {
      // It may have been killed before or after it was born.
      kept.keeper = undefined;
      kept.files = new Map(PATHS.map((path) => [path, kept.file(path)]));
    }
  }
  kept.boot = boot;
  kept.struck = false;
  return kept.unsettled ? settle(world, kept) : true;
}

/** What a client of a platform that was killed had begun runs to its end. */
async function settle(world: World, kept: Kept): Promise<boolean> {
  const done = await world.attempt("settle", () => kept.sandbox.commands.list(), kept.id);
  if (done === undefined || done.value.some(({ pid }) => pid !== kept.keeper?.pid)) return false;
  kept.unsettled = false;
  return true;
}
