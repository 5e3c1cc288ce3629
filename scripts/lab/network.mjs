/**
 * Hosts of a cluster on one machine: a network namespace for each, with an address of its own on a common bridge, which
 * lives in one more namespace. Needs root. Nothing outside of the namespaces changes except one interface, by which this
 * machine reaches the hosts.
 */
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { run } from "../lib/run.mjs";

/** Hosts have the addresses 1 and up of a subnet `10.231.N.0/24`; this machine has this one. */
const OWN = 254;
/** `/sys` shows the network of the process that mounted it. */
const WITH_OWN_SYS = 'mount -t sysfs sys /sys && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"';
/** How long a process may take to be gone after SIGKILL, in milliseconds. */
const DYING_MS = 10_000;

export class LabNetwork {
  /** Ends the names of everything that belongs to this network. */
  #tag = `${randomInt(1, 255)}`;
  /** @type {string[]} */
  #spaces = [];

  /** @param {number} hosts How many, up to 200. */
  static async open(hosts) {
    const network = new LabNetwork();
    try {
      await network.#make(hosts);
      return network;
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /** @param {number} host Counted from 1. */
  address(host) {
    return `10.231.${this.#tag}.${host}`;
  }

  /**
   * Returns a program and its arguments with which another program runs on a host. Only the network is the host's, and
   * what `/sys` says about it.
   *
   * @param {number} host
   * @returns {[string, string[]]}
   */
  on(host) {
    const enter = [`--net=/run/netns/${this.#space(host)}`, "--", "unshare", "--mount", "--propagation", "private"];
    return ["nsenter", [...enter, "sh", "-c", WITH_OWN_SYS, "sh"]];
  }

  /**
   * Cuts a host off from some of the others, or from all: nothing gets through in either direction. This machine still
   * reaches it.
   *
   * @param {number} host
   * @param {readonly number[]} others
   */
  async partition(host, others) {
    const set = `{ ${others.map((other) => this.address(other)).join(", ")} }`;
    await this.heal(host);
    await this.#nft(
      host,
      [
        "add table inet lab",
        "add chain inet lab in { type filter hook input priority -300 ; }",
        "add chain inet lab out { type filter hook output priority -300 ; }",
        `add rule inet lab in ip saddr ${set} drop`,
        `add rule inet lab out ip daddr ${set} drop`,
      ].join("\n"),
    );
  }

  /** @param {number} host */
  async heal(host) {
    await this.#nft(host, "add table inet lab\ndelete table inet lab");
  }

  /**
   * Kills everything that runs on a host: platform, guests and servers.
   *
   * @param {number} host
   * @param {string} directory Of the host: guests in a jail have a network of their own, and are found by it.
   */
  async killAll(host, directory) {
    const end = performance.now() + DYING_MS;
    for (;;) {
      const pids = [...pidsIn(`/run/netns/${this.#space(host)}`), ...pidsWith(`${directory}/`)];
      if (pids.length === 0) return;
      if (performance.now() > end) throw new Error(`Processes ${pids.join(", ")} on host ${host} do not end.`);
      for (const pid of pids) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It has ended.
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Removes the namespaces. Kill what runs there before. */
  async close() {
    for (const space of this.#spaces.splice(0)) {
      await run("ip", ["netns", "delete", space]).catch(() => {}); // it was never made
    }
    // Goes with its other end, a moment later.
    await run("ip", ["link", "delete", this.#outside()]).catch(() => {});
  }

  /** @param {number} hosts */
  async #make(hosts) {
    const hub = `hib-lab-${this.#tag}-hub`;
    await this.#addSpace(hub);
    await run("ip", ["-n", hub, "link", "add", "hub", "type", "bridge"]);
    await run("ip", ["-n", hub, "link", "set", "hub", "up"]);
    await run("ip", ["link", "add", this.#outside(), "type", "veth", "peer", "name", "outside", "netns", hub]);
    await run("ip", ["address", "add", `${this.address(OWN)}/24`, "dev", this.#outside()]);
    await run("ip", ["link", "set", this.#outside(), "up"]);
    await run("ip", ["-n", hub, "link", "set", "outside", "master", "hub", "up"]);
    for (let host = 1; host <= hosts; host += 1) {
      const space = this.#space(host);
      await this.#addSpace(space);
      await run("ip", ["-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", `h${host}`, "netns", hub]);
      await run("ip", ["-n", hub, "link", "set", `h${host}`, "master", "hub", "up"]);
      await run("ip", ["-n", space, "address", "add", `${this.address(host)}/24`, "dev", "eth0"]);
      await run("ip", ["-n", space, "link", "set", "eth0", "up"]);
      await run("ip", ["-n", space, "link", "set", "lo", "up"]);
      await run("ip", ["-n", space, "route", "add", "default", "via", this.address(OWN)]);
    }
  }

  /** @param {string} space */
  async #addSpace(space) {
    await run("ip", ["netns", "add", space]);
    this.#spaces.push(space);
  }

  /** @param {number} host @param {string} rules */
  async #nft(host, rules) {
    const [program, args] = this.on(host);
    await run(program, [...args, "sh", "-c", 'printf "%s\\n" "$1" | nft -f -', "nft", rules]);
  }

  /** @param {number} host */
  #space(host) {
    return `hib-lab-${this.#tag}-${host}`;
  }

  #outside() {
    return `hiblab${this.#tag}`;
  }
}

/**
 * Returns the processes whose network is this namespace.
 *
 * @param {string} space
 */
function pidsIn(space) {
  const inode = inodeOf(space);
  if (inode === undefined) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && inodeOf(`/proc/${name}/ns/net`) === inode && !isZombie(name))
    .map(Number);
}

/**
 * Returns the processes that have this in their arguments, except for this one.
 *
 * @param {string} text
 */
function pidsWith(text) {
  const has = (/** @type {string} */ pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && has(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/** @param {string} path */
function inodeOf(path) {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}

/** @param {string} pid */
function isZombie(pid) {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}
