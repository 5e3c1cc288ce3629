/** Debian's etcd for tests, which `npm run setup -- --tests` unpacks: one member or several, each a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { findTool } from "../../../scripts/lib/test-tools.mjs";
import { openTempFolder } from "../../platform/test/helpers/temp.ts";

const PROGRAM = findTool("etcd");
/** Only a fault reaches it. */
const START_MS = 30_000;
/** For one member, which elects itself: leases may then be as short as a second. */
const ALONE = ["--heartbeat-interval=50", "--election-timeout=500"];

/** One member of etcd. */
export class EtcdMember {
  readonly url: string;
  readonly #args: string[];
  #child: ChildProcess | undefined;

  constructor(url: string, args: string[]) {
    this.url = url;
    this.#args = args;
  }

  start(): void {
    this.#child = spawn(PROGRAM, this.#args, { stdio: "ignore" });
    this.#child.on("error", (error) =>
      console.error(`etcd does not start: ${error.message} (npm run setup -- --tests gets it)`),
    );
  }

  /** Ends it at once. Its data stays. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Stops its process, whose connections stay open. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }
}

export interface Etcd extends AsyncDisposable {
  /** Where clients connect. */
  endpoints: string[];
  members: EtcdMember[];
  /** The member that the others follow. */
  leader(): Promise<EtcdMember>;
  /** Copies what the only member has. Resolves with how to restore that. */
  backup(): Promise<() => Promise<void>>;
  /** Deletes all keys of a prefix. */
  clear(prefix: string): Promise<void>;
  /** Forgets what changed up to a revision. */
  compact(revision: number): Promise<void>;
  dispose(): Promise<void>;
}

/** Starts etcd, and waits until it answers. The caller disposes of it. */
export async function startEtcd({ members: count = 1 } = {}): Promise<Etcd> {
  const folder = await openTempFolder("etcd");
  const places = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const [client, peer] = await Promise.all([freePort(), freePort()]);
      return { name: `m${index}`, client: `http://127.0.0.1:${client}`, peer: `http://127.0.0.1:${peer}` };
    }),
  );
  const all = places.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const members = places.map(
    ({ name, client, peer }) =>
      new EtcdMember(client, [
        ...["--name", name, "--data-dir", join(folder.path, name), "--initial-cluster", all],
        ...["--listen-client-urls", client, "--advertise-client-urls", client],
        ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
        ...["--initial-cluster-state", "new", "--logger", "zap", "--log-level", "error"],
        ...(count === 1 ? ALONE : []),
      ]),
  );
  const dispose = async () => {
    await Promise.all(members.map((member) => member.kill()));
    await folder.dispose();
  };
  const endpoints = members.map(({ url }) => url);
  const etcd: Etcd = {
    endpoints,
    members,
    dispose,
    [Symbol.asyncDispose]: dispose,
    async leader() {
      for (const member of members) {
        const status = await post(member.url, "/v3/maintenance/status", {}).catch(() => undefined);
        if (status?.leader !== undefined && status.leader === status.header.member_id) return member;
      }
      throw new Error("etcd has no leader");
    },
    async backup() {
      const [member, ...others] = members;
      if (member === undefined || others.length > 0) throw new Error("only one member can be restored");
      const [data, copy] = ["m0", "backup"].map((name) => join(folder.path, name)) as [string, string];
      const replace = async (from: string, to: string) => {
        await member.kill();
        await rm(to, { recursive: true, force: true });
        await cp(from, to, { recursive: true });
        member.start();
        await vi.waitFor(() => etcd.leader(), { timeout: START_MS, interval: 50 });
      };
      await replace(data, copy);
      return () => replace(copy, data);
    },
    clear: async (prefix) => {
      const end = prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
      const [key, rangeEnd] = [prefix, end].map((text) => Buffer.from(text).toString("base64"));
      await post(endpoints[0] as string, "/v3/kv/deleterange", { key, range_end: rangeEnd });
    },
    compact: async (revision) => {
      await post(endpoints[0] as string, "/v3/kv/compaction", { revision: String(revision), physical: true });
    },
  };
  try {
    for (const member of members) member.start();
    await vi.waitFor(() => etcd.leader(), { timeout: START_MS, interval: 50 });
    return etcd;
  } catch (error) {
    await dispose();
    throw error;
  }
}

interface Status {
  header: { member_id: string };
  leader?: string;
}

async function post(url: string, path: string, body: object): Promise<Status> {
  const reply = await fetch(new URL(path, url), {
    method: "POST",
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(2000),
  });
  if (!reply.ok) throw new Error(await reply.text());
  return (await reply.json()) as Status;
}
