/** A platform as its users run it: `hibernaut serve` in a process of its own, spoken to over HTTP. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ClientOptions, HibernautClient, type Machine, type MachineConfig } from "@hibernaut/client";
import { guestsIn, killProcess } from "../../src/hypervisor/qemu/process.ts";
import { listTaps } from "../../src/network/bridge/commands.ts";
import { namesFor } from "../../src/network/bridge/names.ts";
import { uninstallBridge } from "../../src/network/bridge/remove.ts";
import { addPreparedImages } from "./prepared-images.ts";
import { ACCELERATOR, dataFolder } from "./qemu-world.ts";
import { waitS } from "./slow.ts";
import { SMALL_APP } from "./small-app/image.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const WAIT_S = waitS(120);
/** Warm sleep as users have it who set nothing. */
export const WARM = { HIBERNAUT_KEEP_WARM: "5m" };

export class Served {
  readonly #dataDir: string;
  readonly #env: Record<string, string>;
  readonly #options: Partial<ClientOptions>;
  #child: ChildProcess | undefined;
  #client: HibernautClient | undefined;
  /** Where apps answer. */
  proxyUrl = "";
  /** Where the API answers. */
  apiUrl = "";

  /** `options` are what the test's own client needs besides address and token. */
  constructor(dataDir: string, env: Record<string, string> = {}, options: Partial<ClientOptions> = {}) {
    this.#options = options;
    this.#dataDir = dataDir;
    this.#env = env;
  }

  get client(): HibernautClient {
    if (this.#client === undefined) throw new Error("the platform is not started");
    return this.#client;
  }

  /** Starts the platform; settles when it answers, so recovery is done. `options` are those of `serve`. */
  async start(env: Record<string, string> = {}, options: string[] = []): Promise<void> {
    const child = spawn(process.execPath, [CLI, "serve", "--json", ...options], {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        HIBERNAUT_DATA_DIR: this.#dataDir,
        XDG_CONFIG_HOME: join(this.#dataDir, "cfg"),
        HIBERNAUT_API_LISTEN: "127.0.0.1:0",
        HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
        HIBERNAUT_ACCELERATOR: ACCELERATOR,
        HIBERNAUT_LAYER_SIZE_MB: "256",
        HIBERNAUT_LOG_LEVEL: "silent",
        // Most stories are about snapshots: a wake that finds the VMM in memory would not need them.
        HIBERNAUT_KEEP_WARM: "0",
        ...this.#env,
        ...env,
      },
    });
    this.#child = child;
    const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the platform ended with ${code}`)));
    const [line] = await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), ended]);
    ended.catch(() => {});
    const document = JSON.parse(String(line)) as { api_url?: string; proxy_url: string; message?: string };
    const { api_url: apiUrl, proxy_url: proxyUrl } = document;
    // A start that is refused prints its error in the place of the addresses.
    if (apiUrl === undefined) {
      await this.stop();
      throw new Error(document.message);
    }
    this.proxyUrl = proxyUrl;
    this.apiUrl = apiUrl;
    const { api_token: token } = JSON.parse(await readFile(join(this.#dataDir, "config.json"), "utf8")) as {
      api_token: string;
    };
    this.#client = new HibernautClient({ apiUrl, token, ...this.#options });
  }

  /** The platform's process. */
  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error("the platform is not started");
    return this.#child.pid;
  }

  /** `kill -9`: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
}

/** A platform with its own data directory and an app, and the means to see what it leaves behind. */
export class Place {
  readonly app = "shop";
  readonly dataDir: string;
  readonly served: Served;
  readonly #dispose: () => Promise<void>;

  private constructor(dataDir: string, served: Served, dispose: () => Promise<void>) {
    this.dataDir = dataDir;
    this.served = served;
    this.#dispose = dispose;
  }

  /** Starts it in `folder`, or in a new one that has the prepared images. */
  static async open(
    env: Record<string, string> = {},
    folder?: { path: string; dispose(): Promise<void> },
    options: Partial<ClientOptions> = {},
  ): Promise<Place> {
    const { path, dispose } = folder ?? (await dataFolder());
    if (folder === undefined) await addPreparedImages(path);
    const place = new Place(path, new Served(path, env, options), dispose);
    try {
      await place.served.start();
      await place.client.createApp(place.app);
      return place;
    } catch (error) {
      await place.served.stop();
      await uninstallBridge(path);
      await dispose();
      throw error;
    }
  }

  get client(): HibernautClient {
    return this.served.client;
  }

  get proxyUrl(): string {
    return this.served.proxyUrl;
  }

  /** The admin token. */
  async token(): Promise<string> {
    const text = await readFile(join(this.dataDir, "config.json"), "utf8");
    return (JSON.parse(text) as { api_token: string }).api_token;
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
  processes() {
    return guestsIn(this.dataDir);
  }

  /** What machines have left in the data directory. */
  async leftovers(): Promise<string[]> {
    const folders = await Promise.all(["machines", "run"].map((name) => readdir(join(this.dataDir, name))));
    return folders.flat();
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
      await this.#dispose();
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
    ({ stdout }) => stdout.split("\n").filter((line) => line.endsWith(` ${names.table}`)),
    () => [], // no nft, no tables
  );
  return [...links, ...tables];
}
