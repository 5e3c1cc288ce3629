/** One program: it makes sandboxes, uses them in any order, and throws them away. */
import { Sandbox, type SandboxOpts } from "e2b";
import { Holdings } from "./holdings.ts";
import { Kept, look, PATHS } from "./kept.ts";
import { connect, fork, inform, knock, LIFE_MS, pause } from "./life.ts";
import { expire, setTimeout } from "./time.ts";
import { startKeeper, USES } from "./uses.ts";
import type { World } from "./world.ts";

/** How many sandboxes it has at most: each takes memory of the host. */
const MOST = 3;

interface Snapshot {
  id: string;
  parent: Kept;
}

export class Program {
  readonly #world: World;
  readonly #holdings: Holdings;
  #snapshot: Snapshot | undefined;

  constructor(world: World) {
    this.#world = world;
    this.#holdings = new Holdings(world);
  }

  /** A virtual machine is killed. */
  strike(machineId: string): void {
    this.#holdings.strike(machineId);
  }

  async go(going: () => boolean): Promise<void> {
    while (going() && this.#world.trouble.length === 0) await this.#step();
  }

  /** Throws everything away, and looks that nothing is left. */
  async end(): Promise<void> {
    while (this.#holdings.kept.length > 0 && this.#world.trouble.length === 0)
      for (const kept of [...this.#holdings.kept]) await this.#holdings.kill(kept);
    if (this.#world.trouble.length > 0) return;
    await this.#forget();
    await this.#holdings.compare();
    const left = await this.#holdings.all();
    if (left === undefined || left.length > 0)
      this.#world.wrong(`left: ${left?.map(({ sandboxId }) => sandboxId).join(", ") ?? "nobody knows"}`);
  }

  async #step(): Promise<void> {
    const { random } = this.#world;
    const [first, ...others] = this.#holdings.kept;
    if (first === undefined || (this.#holdings.kept.length < MOST && random.between(1, 12) === 1))
      return this.#create();
    if (random.between(1, 12) === 1) return this.#holdings.compare();
    const kept = random.pick([first, ...others]);
    if (kept.state === "unsure" || kept.mayBeGone) return this.#find(kept);
    const life = random.between(1, 100);
    if (life <= 4) return this.#holdings.kill(kept);
    if (life <= 12 && this.#holdings.kept.length < MOST) return this.#fork(kept);
    if (life <= 16) return this.#keepSnapshot(kept);
    if (life <= 22) return void (await setTimeout(this.#world, kept));
    if (life <= 28) return void (await inform(this.#world, kept));
    if (kept.state === "paused")
      return void (await random.pick([connect, connect, connect, knock, pause])(this.#world, kept));
    if (life <= 40) return void (await pause(this.#world, kept));
    if (life <= 43) return void (await connect(this.#world, kept));
    if (life <= 46) return void (await expire(this.#world, kept));
    if ((kept.struck || kept.unsettled || random.between(1, 5) === 1) && !(await look(this.#world, kept))) return;
    await random.pick(USES)(this.#world, kept);
  }

  /** After a call that failed: it happened or not. */
  async #find(kept: Kept): Promise<void> {
    await inform(this.#world, kept);
    if (kept.mayBeGone && kept.state === "unsure") await this.#holdings.kill(kept);
  }

  async #create(): Promise<void> {
    const { random, faults } = this.#world;
    const from =
      this.#snapshot === undefined
        ? random.pick(["base", "pooled", "pooled"])
        : random.pick(["base", "pooled", this.#snapshot.id]);
    const wakes = random.between(1, 2) === 1;
    const options: SandboxOpts = {
      ...this.#world.options,
      metadata: { program: this.#world.name },
      timeoutMs: random.between(...LIFE_MS),
      lifecycle: wakes ? { onTimeout: "pause", autoResume: true } : { onTimeout: "kill" },
    };
    const began = performance.now();
    const done = await this.#world.attempt(`create ${from}`, () => Sandbox.create(from, options));
    if (done === undefined) return this.#holdings.suspect(began);
    const isOfSnapshot = from === this.#snapshot?.id;
    const kept = isOfSnapshot ? this.#snapshot?.parent.heir(done.value) : new Kept(done.value);
    if (kept === undefined) return;
    kept.wakes = wakes;
    if (faults.struck(began, kept.id)) kept.struck = true;
    await this.#holdings.take([kept]);
    if (isOfSnapshot || kept.struck) return;
    const list = () => kept.sandbox.files.list(".").then((entries) => entries.map(({ name }) => name));
    const names = await this.#world.attempt("list-files", list, kept.id);
    if (names !== undefined && names.value.length > 0)
      this.#world.wrong(`${kept.id} begins with ${names.value.join(", ")}`);
    await startKeeper(this.#world, kept);
  }

  async #fork(kept: Kept): Promise<void> {
    const began = performance.now();
    const children = await fork(this.#world, kept);
    if (children.length === 0) this.#holdings.suspect(began);
    await this.#holdings.take(children);
  }

  async #keepSnapshot(kept: Kept): Promise<void> {
    if (this.#snapshot !== undefined) return this.#forget();
    const name = this.#world.serial();
    const done = await this.#world.attempt("snapshot", () => kept.sandbox.createSnapshot({ name }), kept.id);
    if (done === undefined) return;
    kept.flush();
    this.#snapshot = { id: done.value.snapshotId, parent: kept.heir(kept.sandbox) };
    if (PATHS.some((path) => kept.file(path).now.size > 1)) await this.#forget();
  }

  async #forget(): Promise<void> {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) return;
    const done = await this.#world.attempt("forget", () => Sandbox.deleteSnapshot(snapshot.id, this.#world.options));
    if (done !== undefined) this.#snapshot = undefined;
  }
}
