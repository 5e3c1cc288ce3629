/** A platform as its users run it: `hibernaut serve` in a process of its own, spoken to over HTTP. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ClientOptions, HibernautClient } from "@hibernaut/client";
import { ACCELERATOR } from "./qemu-world.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

/** Settings of a platform with a data directory of its own, and ports that the kernel chooses. */
export function ownPlatform(dataDir: string): Record<string, string> {
  return {
    HIBERNAUT_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, "cfg"),
    HIBERNAUT_API_LISTEN: "127.0.0.1:0",
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
  };
}

export class Served {
  readonly dataDir: string;
  readonly #env: Record<string, string>;
  readonly #options: Partial<ClientOptions>;
  #child: ChildProcess | undefined;
  #client: HibernautClient | undefined;
  /** Where apps answer. */
  proxyUrl = "";
  /** Where sandboxes answer, if they are on. */
  sandboxUrl = "";
  /** Where Fly's clients are answered, if that is on. */
  flyUrl = "";
  /** Where the API answers. */
  apiUrl = "";

  /** `options` are what the test's own client needs besides address and token. */
  constructor(dataDir: string, env: Record<string, string> = {}, options: Partial<ClientOptions> = {}) {
    this.#options = options;
    this.dataDir = dataDir;
    this.#env = env;
  }

  /** Where the API of each host answers; this one first. */
  get apiUrls(): string[] {
    return [this.apiUrl];
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
        ...ownPlatform(this.dataDir),
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
    const document = JSON.parse(String(line)) as {
      api_url?: string;
      proxy_url: string;
      sandbox_url?: string;
      fly_url?: string;
      message?: string;
    };
    const { api_url: apiUrl, proxy_url: proxyUrl, sandbox_url: sandboxUrl = "", fly_url: flyUrl = "" } = document;
    // A start that is refused prints its error in the place of the addresses.
    if (apiUrl === undefined) {
      await this.stop();
      throw new Error(document.message);
    }
    this.proxyUrl = proxyUrl;
    this.sandboxUrl = sandboxUrl;
    this.flyUrl = flyUrl;
    this.apiUrl = apiUrl;
    this.#client = this.makeClient({ apiUrl, token: await this.token(), ...this.#options });
  }

  protected makeClient(options: ClientOptions): HibernautClient {
    return new HibernautClient(options);
  }

  /** What Prometheus would read. */
  async metrics(): Promise<string> {
    const headers = { authorization: `Bearer ${await this.token()}` };
    return (await fetch(`${this.apiUrl}/metrics`, { headers })).text();
  }

  /** The admin token. */
  async token(): Promise<string> {
    const text = await readFile(join(this.dataDir, "config.json"), "utf8");
    return (JSON.parse(text) as { api_token: string }).api_token;
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
