/** A platform on a host of the lab. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeBinary, ROOT } from "../lib/node.mjs";
import { run, SetupError } from "../lib/run.mjs";
import { slowed } from "../lib/slow.mjs";

const CLI = join(ROOT, "packages/cli/bin/hibernaut.js");
const API_PORT = 4280;
const PEER_PORT = 4281;
const PROXY_PORT = 8080;
const LOG_LINES = 15;
/** Three platforms prove their accelerator at the same time. */
const START_MS = slowed(180_000);

export class LabHost {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #platform;
  #network;
  #settings;

  /**
   * @param {import("./network.mjs").LabNetwork} network
   * @param {object} options
   * @param {number} options.number Of its namespace.
   * @param {string} options.name
   * @param {string} options.directory Where its directories are made.
   * @param {Record<string, string>} [options.settings]
   */
  constructor(network, { number, name, directory, settings = {} }) {
    this.#network = network;
    this.number = number;
    this.name = name;
    this.address = network.address(number);
    this.dataDir = join(directory, name);
    this.log = join(directory, `${name}.log`);
    this.peer = `${this.address}:${PEER_PORT}`;
    this.apiUrl = `http://${this.address}:${API_PORT}`;
    this.proxyPort = PROXY_PORT;
    mkdirSync(join(this.dataDir, "cfg"), { recursive: true, mode: 0o700 });
    this.#settings = {
      HIBERNAUT_DATA_DIR: this.dataDir,
      XDG_CONFIG_HOME: join(this.dataDir, "cfg"),
      HIBERNAUT_API_LISTEN: `${this.address}:${API_PORT}`,
      HIBERNAUT_PEER_LISTEN: this.peer,
      HIBERNAUT_PROXY_LISTEN: `${this.address}:${PROXY_PORT}`,
      HIBERNAUT_LOG_FORMAT: "text",
      ...settings,
    };
  }

  get running() {
    const child = this.#platform;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  get pid() {
    return this.#platform?.pid;
  }

  /** Runs the CLI on the host. Resolves with what it prints. @param {string[]} args */
  cli(...args) {
    const [program, before] = this.#network.on(this.number);
    const what = `hibernaut ${args.join(" ")} on host ${this.name}`;
    return run(program, [...before, nodeBinary(), CLI, ...args], { env: this.#environment(), what });
  }

  /** Starts the platform. Resolves once it is ready. */
  async start() {
    const [program, before] = this.#network.on(this.number);
    const log = openSync(this.log, "a");
    const child = spawn(program, [...before, nodeBinary(), CLI, "serve", "--json"], {
      cwd: ROOT,
      env: this.#environment(),
      stdio: ["ignore", "pipe", log],
    });
    this.#platform = child;
    const { stdout } = child;
    if (stdout === null) throw new Error("the platform has a pipe");
    const signal = AbortSignal.timeout(START_MS);
    let said = "";
    for await (const line of createInterface({ input: stdout, signal })) {
      if (line.startsWith("{")) {
        stdout.resume();
        if (line.includes('"api_url"')) return;
      }
      said += `${line}\n`;
    }
    throw new SetupError(`The platform of host ${this.name} ended before it was ready.\n${said || this.lastLines()}`);
  }

  /** Ends the platform with a signal, and waits for its end. Its machines keep running. @param {NodeJS.Signals} [signal] */
  async end(signal = "SIGTERM") {
    const child = this.#platform;
    if (child === undefined || !this.running) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  /** Stops the platform in the middle of what it does (`SIGSTOP`), or lets it continue (`SIGCONT`). @param {"SIGSTOP" | "SIGCONT"} signal */
  signal(signal) {
    this.#platform?.kill(signal);
  }

  /** Kills everything that runs on the host, at once. */
  killAll() {
    return this.#network.killAll(this.number, this.dataDir);
  }

  /** The end of the platform's log. */
  lastLines() {
    return readFileSync(this.log, "utf8").split("\n").slice(-LOG_LINES).join("\n");
  }

  /** The token of an administrator. It is the same on all hosts of a cluster. */
  token() {
    return String(JSON.parse(readFileSync(join(this.dataDir, "config.json"), "utf8")).api_token);
  }

  #environment() {
    return { ...process.env, HIBERNAUT_LOG_LEVEL: "info", ...this.#settings };
  }
}
