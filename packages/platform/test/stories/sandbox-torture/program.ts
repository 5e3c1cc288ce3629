/** One program: it makes sandboxes, uses them in any order, and throws them away. */
import { Sandbox, type SandboxInfo, type SandboxOpts } from "e2b";
import { Kept, look, PATHS } from "./kept.ts";
import { connect, fork, inform, kill, knock, LIFE_MS, pause, setTimeout } from "./life.ts";
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
  readonly #kept: Kept[] = [];
  /** Killed, acknowledged. */
  readonly #dead = new Set<string>();
  #snapshot: Snapshot | undefined;
  /** The platform was killed while it made some: there may be some that nobody was told of. */
  #maybeOthers = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** A virtual machine is killed. */
  strike(machineId: string): void {
    for (const kept of this.#kept) if (kept.id === machineId) kept.strike();
  }

  async go(going: () => boolean): Promise<void> {
    while (going() && this.#world.trouble.length === 0) await this.#step();
  }

  /** Throws everything away, and looks that nothing is left. */
  async end(): Promise<void> {
    while (this.#kept.length > 0 && this.#world.trouble.length === 0)
      for (const kept of [...this.#kept]) await this.#kill(kept);
    if (this.#world.trouble.length > 0) return;
    await this.#forget();
    await this.#list();
    const left = await this.#all();
    if (left === undefined || left.length > 0) this.#world.wrong(`left: ${left?.map(({ sandboxId }) => sandboxId)}`);
  }

  async #step(): Promise<void> {
    const { random } = this.#world;
    const [first, ...others] = this.#kept;
    if (first === undefined || (this.#kept.length < MOST && random.between(1, 12) === 1)) return this.#create();
    if (random.between(1, 12) === 1) return this.#list();
    const kept = random.pick([first, ...others]);
    if (kept.state === "unsure" || kept.mayBeGone) return this.#find(kept);
    const life = random.between(1, 100);
    if (life <= 4) return this.#kill(kept);
    if (life <= 12 && this.#kept.length < MOST) return this.#fork(kept);
    if (life <= 16) return this.#keepSnapshot(kept);
    if (life <= 22) return void (await setTimeout(this.#world, kept));
    if (life <= 28) return inform(this.#world, kept);
    if (kept.state === "paused")
      return void (await random.pick([connect, connect, connect, knock, pause])(this.#world, kept));
    if (life <= 40) return void (await pause(this.#world, kept));
    if (life <= 43) return void (await connect(this.#world, kept));
    if ((kept.struck || kept.unsettled || random.between(1, 5) === 1) && !(await look(this.#world, kept))) return;
    await random.pick(USES)(this.#world, kept);
  }

  /** After a call that failed: it happened or not. */
  async #find(kept: Kept): Promise<void> {
    await inform(this.#world, kept);
    if (kept.mayBeGone && kept.state === "unsure") await this.#kill(kept);
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
    if (done === undefined) return this.#suspect(began);
    const isOfSnapshot = from === this.#snapshot?.id;
    const kept = isOfSnapshot ? this.#snapshot?.parent.heir(done.value) : new Kept(done.value);
    if (kept === undefined) return;
    kept.wakes = wakes;
    if (faults.struck(began, kept.id)) kept.struck = true;
    await this.#take([kept]);
    if (isOfSnapshot || kept.struck) return;
    const list = () => kept.sandbox.files.list(".").then((entries) => entries.map(({ name }) => name));
    const names = await this.#world.attempt("list-files", list, kept.id);
    if (names !== undefined && names.value.length > 0) this.#world.wrong(`${kept.id} begins with ${names.value}`);
    await startKeeper(this.#world, kept);
  }

  async #fork(kept: Kept): Promise<void> {
    const began = performance.now();
    const children = await fork(this.#world, kept);
    if (children.length === 0) this.#suspect(began);
    await this.#take(children);
  }

  async #take(children: Kept[]): Promise<void> {
    this.#kept.push(...children);
    for (const child of children) {
      this.#world.unique(`sandbox ${child.id}`);
      if (this.#dead.has(child.id)) this.#world.wrong(`${child.id} is born again`);
    }
    for (const child of children) await look(this.#world, child);
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

  async #kill(kept: Kept): Promise<void> {
    if (!(await kill(this.#world, kept))) return;
    this.#dead.add(kept.id);
    const at = this.#kept.indexOf(kept);
    if (at >= 0) this.#kept.splice(at, 1); // one that nobody was told of is not among them
  }

  /** A call that makes some has failed. Nothing is left of it, unless the platform could not clear up. */
  #suspect(began: number): void {
    if (this.#world.faults.away(began)) this.#maybeOthers = true;
  }

  async #all(): Promise<SandboxInfo[] | undefined> {
    const all = async () => {
      const found: SandboxInfo[] = [];
      const pages = Sandbox.list({
        ...this.#world.options,
        query: { metadata: { program: this.#world.name } },
        limit: 2,
      });
      while (pages.hasNext) found.push(...(await pages.nextItems()));
      return found;
    };
    return (await this.#world.attempt("list", all, "none"))?.value;
  }

  /** Compares the list with what was acknowledged, and throws away what nobody was told of. */
  async #list(): Promise<void> {
    const all = await this.#all();
    if (all === undefined) return;
    for (const kept of this.#kept) {
      const state = all.find(({ sandboxId }) => sandboxId === kept.id)?.state;
      if (state === undefined && !kept.mayBeGone) this.#world.wrong(`${kept.id} is not in the list`);
      if (state !== undefined && kept.state !== "unsure" && state !== kept.state)
        this.#world.wrong(`${kept.id} is ${state} in the list, and not ${kept.state}`);
    }
    for (const { sandboxId } of all) {
      if (this.#dead.has(sandboxId)) this.#world.wrong(`${sandboxId} was killed, and is in the list`);
      if (this.#kept.some(({ id }) => id === sandboxId)) continue;
      if (!this.#maybeOthers) this.#world.wrong(`nobody made ${sandboxId}`);
      // It is whole: it runs, or can be woken, and killed.
      const done = await this.#world.attempt("adopt", () => Sandbox.connect(sandboxId, this.#world.options), sandboxId);
      if (done === undefined) return;
      const kept = new Kept(done.value);
      await look(this.#world, kept);
      await this.#kill(kept);
    }
    this.#maybeOthers = false;
  }
}
