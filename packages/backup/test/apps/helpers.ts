/** A platform on a fake host with an app in a backup, out of which it is restored. */
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MachineConfig } from "@hibernaut/domain/config";
import { expect, vi } from "vitest";
import { runningMachine } from "../../../platform/test/helpers/fake-world.ts";
import type { AppRestores } from "../../src/apps/app-restores.ts";
import type { Home } from "../targets/helpers.ts";

const TIMEOUT = { timeoutMs: 5000 };
/** restic derives a key for each piece, on purpose slowly, also next to emulated guests. */
export const PATIENCE_MS = 120_000;
const MOUNTS = { mounts: [{ volume: "data", path: "/data" }] };

/** A machine of app `shop` with a volume, as it was when it was backed up. */
export interface BackedUp {
  id: string;
  volume: string;
  /** How many requests it had answered. */
  count: number;
}

/** A platform whose app `shop` is in a backup at the target `disk`. */
export class Shop {
  readonly home: Home;
  /** Where its backups are. */
  target = { url: "", key: "" };

  constructor(home: Home) {
    this.home = home;
  }

  get platform() {
    return this.home.platform;
  }

  /** Backs up a machine that sleeps, with a volume that says `before`. Afterwards, the volume says `after`. */
  async backUp(config: Partial<MachineConfig> = {}): Promise<BackedUp> {
    const { machines, volumes } = this.platform;
    const id = await runningMachine(this.platform, { ...MOUNTS, ...config });
    const { count = 0 } = this.home.world.host.guest(id)?.request() ?? {};
    const [{ id: volume } = { id: "" }] = volumes.list("shop");
    await writeFile(this.#diskOf(volume), "before");
    machines.suspend("shop", id);
    await machines.wait("shop", id, ["suspended"], TIMEOUT);
    this.target = await this.home.add();
    expect(await this.home.backUp()).toMatchObject({ state: "complete" });
    await writeFile(this.#diskOf(volume), "after");
    return { id, volume, count };
  }

  /** Restores, and returns how that ended. */
  async restore(wanted: Parameters<AppRestores["restore"]>[1]) {
    await this.platform.appRestores.restore("disk", wanted);
    const { lastRestore } = await this.idle();
    if (lastRestore === null) throw new Error("nothing was restored");
    return lastRestore;
  }

  /** Tries the app, and returns what was found. */
  async drill(wanted: Parameters<AppRestores["drill"]>[1] = { app: "shop" }) {
    await this.platform.appRestores.drill("disk", wanted);
    const [drill] = (await this.idle()).drills;
    if (drill === undefined) throw new Error("nothing was tried");
    return drill;
  }

  async wake(app: string, id = "") {
    const { machines } = this.platform;
    machines.start(app, id);
    await machines.wait(app, id, ["running"], TIMEOUT);
    return { boot: machines.get(app, id).record.lastBoot, count: this.home.world.host.guest(id)?.request()?.count };
  }

  async contentOf(volume = ""): Promise<string> {
    // A cold start has made it as large as its volume.
    await using disk = await open(this.#diskOf(volume), "r");
    const { buffer, bytesRead } = await disk.read(Buffer.alloc(100), 0, 100, 0);
    return buffer.toString("utf8", 0, bytesRead).replaceAll("\0", "");
  }

  /** Waits until nothing happens at the target. */
  async idle() {
    const view = () => this.home.targets.get("disk");
    await vi.waitFor(async () => expect((await view()).running).toBeNull(), { timeout: PATIENCE_MS });
    return view();
  }

  #diskOf(volume: string): string {
    return join(this.home.world.folder, "volumes", volume, "data.ext4");
  }
}
