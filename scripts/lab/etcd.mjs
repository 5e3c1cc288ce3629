/** A member of etcd on a host of the lab. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findTool, toolEnvironment } from "../lib/test-tools.mjs";

export const CLIENT_PORT = 2379;
const PEER_PORT = 2380;
/** How long a member may take until it serves, in milliseconds: it needs the others for that. */
const START_MS = 60_000;
const LOOK_MS = 50;

/** The members of one etcd, one on each host. */
export class LabEtcd {
  /** @type {Map<number, import("node:child_process").ChildProcess>} */
  #members = new Map();
  #network;
  #directory;
  #hosts;

  /**
   * @param {import("./network.mjs").LabNetwork} network
   * @param {{ directory: string, hosts: readonly number[] }} options
   */
  constructor(network, { directory, hosts }) {
    this.#network = network;
    this.#directory = directory;
    this.#hosts = hosts;
  }

  /** What clients connect to. */
  urls() {
    return this.#hosts.map((host) => this.url(host));
  }

  /** @param {number} host */
  url(host) {
    return `http://${this.#network.address(host)}:${CLIENT_PORT}`;
  }

  /** Starts all members. Resolves once they serve. */
  async open() {
    for (const host of this.#hosts) this.#spawn(host);
    await Promise.all(this.#hosts.map((host) => this.#ready(host)));
  }

  /** Starts a member again that was killed. @param {number} host */
  async start(host) {
    this.#spawn(host);
    await this.#ready(host);
  }

  /** @param {number} host */
  async kill(host) {
    const member = this.#members.get(host);
    if (member === undefined || member.exitCode !== null || member.signalCode !== null) return;
    const ended = once(member, "exit");
    member.kill("SIGKILL");
    await ended;
  }

  /** Returns the host whose member leads. */
  async leader() {
    /** @type {Map<string, number>} */
    const members = new Map();
    let leader = "";
    for (const host of this.#hosts) {
      const status = await this.#status(host);
      if (status === undefined) continue;
      members.set(status.header.member_id, host);
      leader = status.leader;
    }
    const found = members.get(leader);
    if (found === undefined) throw new Error("No member of etcd leads.");
    return found;
  }

  /** @param {number} host */
  #spawn(host) {
    const [program, before] = this.#network.on(host);
    const own = this.#network.address(host);
    const at = (/** @type {number} */ one, /** @type {number} */ port) =>
      `http://${this.#network.address(one)}:${port}`;
    const log = openSync(join(this.#directory, `etcd-${host}.log`), "a");
    const member = spawn(
      program,
      [
        ...[...before, findTool("etcd"), "--name", `e${host}`, "--data-dir", join(this.#directory, `etcd-${host}`)],
        ...["--listen-client-urls", `http://${own}:${CLIENT_PORT}`, "--advertise-client-urls", at(host, CLIENT_PORT)],
        ...["--listen-peer-urls", `http://${own}:${PEER_PORT}`, "--initial-advertise-peer-urls", at(host, PEER_PORT)],
        ...["--initial-cluster", this.#hosts.map((one) => `e${one}=${at(one, PEER_PORT)}`).join(",")],
        ...["--initial-cluster-token", "lab", "--logger", "zap", "--log-level", "warn"],
      ],
      { stdio: ["ignore", log, log], env: toolEnvironment() },
    );
    this.#members.set(host, member);
  }

  /** @param {number} host */
  async #ready(host) {
    const end = performance.now() + START_MS;
    while ((await this.#status(host))?.leader === undefined) {
      if (performance.now() > end) throw new Error(`etcd on host ${host} does not serve; see etcd-${host}.log.`);
      await delay(LOOK_MS);
    }
  }

  /**
   * @param {number} host
   * @returns {Promise<{ leader: string, header: { member_id: string } } | undefined>}
   */
  async #status(host) {
    try {
      const signal = AbortSignal.timeout(1000);
      const response = await fetch(`${this.url(host)}/v3/maintenance/status`, { method: "POST", body: "{}", signal });
      const status = /** @type {any} */ (await response.json());
      // Without a leader, etcd leaves it out.
      return status.leader === undefined || status.leader === "0" ? undefined : status;
    } catch {
      return undefined;
    }
  }
}
