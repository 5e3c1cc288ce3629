/** A cluster on one machine: hosts with their networks, etcd on the first three of them, and a platform on each. */
import { request } from "node:http";
import { slowed } from "../lib/slow.mjs";
import { LabEtcd } from "./etcd.mjs";
import { LabHost } from "./host.mjs";
import { LabNetwork } from "./network.mjs";

/** How many members etcd has at most: one can be lost. */
const MEMBERS = 3;
/** A cold start under emulation, on a busy machine. */
const ASK_MS = slowed(120_000);

/** The lab's networks are of its hosts alone. */
const INSECURE = "--insecure-etcd";

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} text
 * @property {string} wake How the machine came to answer.
 * @property {number} took In milliseconds.
 */

export class Lab {
  /** @type {LabHost[]} */
  hosts = [];
  /** @type {LabNetwork | undefined} */
  #network;
  /** @type {LabEtcd | undefined} */
  #etcd;
  #options;

  /** @param {{ directory: string, names: readonly string[], settings?: Record<string, string> }} options */
  constructor(options) {
    this.#options = options;
  }

  get network() {
    if (this.#network === undefined) throw new Error("The lab is not open.");
    return this.#network;
  }

  get etcd() {
    if (this.#etcd === undefined) throw new Error("The lab is not open.");
    return this.#etcd;
  }

  /** Makes the networks and starts etcd. */
  async open() {
    const { directory, names, settings = {} } = this.#options;
    this.#network = await LabNetwork.open(names.length);
    const network = this.#network;
    this.hosts = names.map((name, index) => new LabHost(network, { number: index + 1, name, directory, settings }));
    const members = this.hosts.slice(0, MEMBERS).map(({ number }) => number);
    this.#etcd = new LabEtcd(network, { directory, hosts: members });
    await this.#etcd.open();
  }

  /** Makes a cluster of the hosts. @param {(name: string) => void} [onHost] */
  async join(onHost = () => {}) {
    const [first, ...others] = this.hosts;
    if (first === undefined) throw new Error("There is no host.");
    onHost(first.name);
    await first.cli("cluster", "init", "--name", first.name, "--etcd", this.etcd.urls().join(","), INSECURE);
    await first.start();
    for (const host of others) {
      onHost(host.name);
      const token = JSON.parse(await first.cli("cluster", "token", "--json")).token;
      await host.cli("cluster", "join", token, "--name", host.name, INSECURE);
    }
  }

  /** Starts the platforms that do not run. */
  async start() {
    await Promise.all(this.hosts.filter(({ running }) => !running).map((host) => host.start()));
  }

  /**
   * Sends a request to a host's proxy.
   *
   * @param {LabHost} host
   * @param {string} app
   * @param {string} path
   * @param {{ timeoutMs?: number, headers?: Record<string, string>, json?: unknown }} [options] With `json`, it is a POST.
   * @returns {Promise<Answer>}
   */
  ask({ address, proxyPort }, app, path, { timeoutMs = ASK_MS, headers = {}, json } = {}) {
    const body = json === undefined ? undefined : JSON.stringify(json);
    const sent = body === undefined ? {} : { method: "POST" };
    const about =
      body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const began = performance.now();
    return new Promise((resolve, reject) => {
      const asked = request(
        {
          ...{ host: address, port: proxyPort, path, agent: false, signal: AbortSignal.timeout(timeoutMs), ...sent },
          headers: { ...about, ...headers, host: `${app}.localhost` },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk) => {
            text += chunk;
          });
          response.on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              text,
              wake: String(response.headers["hibernaut-wake"] ?? ""),
              took: Math.round(performance.now() - began),
            }),
          );
        },
      );
      asked.on("error", reject);
      asked.end(body);
    });
  }

  /** Kills everything, and removes the networks. */
  async close() {
    for (const host of this.hosts) await host.killAll();
    await this.#network?.close();
  }
}
