/** Platforms of tests: see {@link Place}. */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ClientOptions, HibernautClient, Machine, MachineConfig } from "@hibernaut/client";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import { listTaps } from "@hibernaut/network/bridge/commands";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { afterAll, beforeAll, expect } from "vitest";
import { OWNER, ThroughPeer } from "../../../cluster/test/through.ts";
import { namesFor } from "../../../network/src/bridge/names.ts";
import { Served } from "./platform-process.ts";
import { addPreparedImages } from "./prepared-images.ts";
import { dataFolder } from "./qemu-world.ts";
import { waitS } from "./slow.ts";
import { SMALL_APP } from "./small-app/image.ts";

export { Served };

const WAIT_S = waitS(120);
/** Warm sleep as users have it who set nothing. */
export const WARM = { HIBERNAUT_KEEP_WARM: "5m" };
/** Whether all machines are on another host than the one that tests talk to: `npm run test:cluster`. */
const THROUGH_PEER = process.env["HIBERNAUT_TEST_THROUGH"] === "peer";

type Folder = Awaited<ReturnType<typeof dataFolder>>;
type Variables = Record<string, string>;

/**
 * A platform with its own data directory and an app, and the means to see what it leaves behind. Under `npm run
 * test:cluster`, it is the first host of a cluster whose machines are on the second: `served` is both, and speaks for the
 * first one; `dataDir` is that of the second.
 */
export class Place {
  readonly app = "shop";
  #opened: { dataDir: string; served: Served; dispose(): Promise<void> } | undefined;

  /** Starts it in `folder`, or in a new one that has the prepared images. */
  static async open(env: Variables = {}, folder?: Folder, options: Partial<ClientOptions> = {}): Promise<Place> {
    const place = new Place();
    await place.#open(env, folder, options);
    return place;
  }

  /**
   * A place that is opened before the tests of the file or the group, and closed after them: they fail if it leaves
   * anything. `env` may be a function, for what earlier hooks find out. `inDirectory` is where its data directory is made.
   */
  static forTests(env: Variables | (() => Variables) = {}, inDirectory?: string): Place {
    const place = new Place();
    beforeAll(() => place.#open(typeof env === "function" ? env() : env, undefined, {}, inDirectory));
    afterAll(async () => {
      expect(await place.close()).toEqual(NOTHING_LEFT);
    });
    return place;
  }

  async #open(
    env: Variables,
    folder?: Folder,
    options: Partial<ClientOptions> = {},
    inDirectory?: string,
  ): Promise<void> {
    const { path, dispose } = folder ?? (await dataFolder(inDirectory));
    if (folder === undefined) await addPreparedImages(path);
    const through = THROUGH_PEER
      ? await ThroughPeer.open({ dataDir: path, images: folder === undefined, env, options })
      : undefined;
    const served = through ?? new Served(path, env, options);
    const remove = async () => {
      await through?.dispose();
      await dispose();
    };
    this.#opened = { dataDir: path, served, dispose: remove };
    try {
      await served.start();
      await this.client.createApp(this.app);
    } catch (error) {
      this.#opened = undefined;
      await served.stop();
      await uninstallBridge(path);
      await remove();
      throw error;
    }
  }

  /** Where the machines are. */
  get dataDir(): string {
    return this.#parts.dataDir;
  }

  /** Where the CLI finds the platform. */
  get home(): string {
    return this.served.dataDir;
  }

  get served(): Served {
    return this.#parts.served;
  }

  get #parts() {
    if (this.#opened === undefined) throw new Error("the platform of these tests was not started");
    return this.#opened;
  }

  get client(): HibernautClient {
    return this.served.client;
  }

  get proxyUrl(): string {
    return this.served.proxyUrl;
  }

  /** The admin token. */
  token(): Promise<string> {
    return this.served.token();
  }

  /** What Prometheus reads, of all hosts. */
  metrics(): Promise<string> {
    return this.served.metrics();
  }

  /** The words of a command that makes machines, with the host that has them. */
  placed(words: readonly string[]): string[] {
    const [noun, verb, ...rest] = words;
    if (!THROUGH_PEER || noun !== "machine" || verb !== "run") return [...words];
    return [noun, verb, "--host", OWNER, ...rest];
  }

  /** Creates a machine of the small app, unless the configuration has another image, and waits until it has started. */
  async machine(config: Partial<MachineConfig> = {}): Promise<Machine> {
    const made = await this.client.createMachine(this.app, {
      config: { image: SMALL_APP, services: [{ internal_port: 8080 }], ...config },
    });
    await this.reach(made.machine_id, "running", "stopped", "failed");
    return this.get(made.machine_id);
  }

  get(id: string): Promise<Machine> {
    return this.client.getMachine(this.app, id);
  }

  async reach(id: string, ...states: string[]): Promise<void> {
    await this.client.waitForMachine(this.app, id, { state: states as never, timeout: WAIT_S });
  }

  async suspend(id: string): Promise<void> {
    await this.client.suspendMachine(this.app, id);
    await this.reach(id, "suspended");
  }

  async start(id: string): Promise<void> {
    await this.client.startMachine(this.app, id);
    await this.reach(id, "running");
  }

  /** QEMU processes of this platform. */
  async processes() {
    return (await Promise.all(this.#directories().map((dataDir) => guestsIn(dataDir)))).flat();
  }

  /** What machines have left in the data directory. */
  async leftovers(): Promise<string[]> {
    const folders = this.#directories().flatMap((dataDir) => ["machines", "run"].map((name) => join(dataDir, name)));
    return (await Promise.all(folders.map((folder) => readdir(folder)))).flat();
  }

  /** The data directories of all hosts. */
  #directories(): string[] {
    return [...new Set([this.dataDir, this.home])];
  }

  /** Destroys everything, ends the platform, uninstalls its network, and says what is still there. */
  async close(): Promise<typeof NOTHING_LEFT> {
    try {
      await this.client.destroyApp(this.app, { force: true });
      await this.served.stop();
      const left = { processes: (await this.processes()).length, files: await this.leftovers() };
      const taps = await listTaps(namesFor(this.dataDir));
      await uninstallBridge(this.dataDir);
      return { ...left, network: [...taps, ...(await networkOf(this.dataDir))] };
    } finally {
      await this.served.stop();
      for (const left of await this.processes()) await killProcess(left);
      await uninstallBridge(this.dataDir);
      await this.#parts.dispose();
    }
  }
}

export const NOTHING_LEFT: { processes: number; files: string[]; network: string[] } = {
  processes: 0,
  files: [],
  network: [],
};

/** The interfaces and tables that the platform of a data directory has now. */
export async function networkOf(dataDir: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  const names = namesFor(dataDir);
  const links = (await readdir("/sys/class/net")).filter((name) => name.startsWith(names.bridge));
  const tables = await promisify(execFile)("nft", ["list", "tables"]).then(
    ({ stdout }) =>
      stdout
        .split("\n")
        .filter((line) => [names.table, names.flowTable, names.clientTable].some((name) => line.endsWith(` ${name}`))),
    () => [], // no nft, no tables
  );
  return [...links, ...tables];
}
