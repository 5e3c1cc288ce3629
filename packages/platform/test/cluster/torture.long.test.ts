/**
 * Three hosts under load while hosts, platforms and members of etcd are killed, stopped and cut off, and a machine moves
 * between them. No write that was acknowledged is lost, no machine runs twice, and errors are those that the documents
 * name. Needs root. `HIBERNAUT_TORTURE_S` sets for how long.
 */
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab } from "../../../../scripts/lab/lab.mjs";
import type { LabHost } from "../../../../scripts/lab/host.mjs";
import { longOr } from "../../../../scripts/lib/long.mjs";
import { COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { openTempFolder } from "../helpers/temp.ts";

const SECONDS = Number(process.env["HIBERNAUT_TORTURE_S"] ?? longOr(600, 90));
const NAMES = ["alpha", "beta", "gamma"];
/** Longer than a host's lease lives, in milliseconds. */
const PAST_THE_LEASE_MS = 15_000;
const CALM_MS = 5_000;
const LOOK_MS = 200;
const RECOVER_MS = 300_000;
/** What a client may be told while hosts are away, by docs/cluster.md. */
const EXPECTED = new Set([
  "host_unreachable",
  "unavailable",
  "moved",
  "machine_failed",
  "machine_unreachable",
  "wake_timeout",
  "shutting_down",
  "bad_gateway",
  "upstream_closed",
  "upstream_unreachable",
]);

/** Keeps what it acknowledges on its volume, and says by a nonce in memory which process answers. */
const APP = `
const fs = require("fs");
const { randomUUID } = require("crypto");
const nonce = randomUUID();
let count = 0;
const file = process.env.KEEP === "1" ? fs.openSync("/data/log", "a") : undefined;
require("http").createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  if (url.pathname === "/all") return response.end(fs.readFileSync("/data/log", "utf8"));
  if (url.pathname === "/write") {
    fs.writeSync(file, url.searchParams.get("id") + "\\n");
    fs.fsyncSync(file);
  }
  count += 1;
  response.end(JSON.stringify({ nonce, count }));
}).listen(8080);
`;

let folder: Awaited<ReturnType<typeof openTempFolder>>;
let lab: Lab;

beforeAll(async () => {
  folder = await openTempFolder("cluster");
  lab = new Lab({
    directory: folder.path,
    names: NAMES,
    settings: { HIBERNAUT_NETWORK: "user", HIBERNAUT_IDLE_CHECK_INTERVAL: "1", HIBERNAUT_RATE_CHANGES: "0" },
  });
  await lab.open();
  await lab.join();
  await lab.start();
}, 600_000);
afterAll(async () => {
  await lab?.close();
  await folder?.[Symbol.asyncDispose]();
});

/** Calls the API of a host. */
async function call(host: LabHost, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${host.apiUrl}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${lab.hosts[0]?.token()}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(120_000),
  });
  // Work that takes a while answers with its progress, line by line; the last one is how it ended.
  const lines = (await response.text()).trim().split("\n");
  const answer = JSON.parse(lines.at(-1) ?? "{}") as Record<string, unknown>;
  if (!response.ok || "error" in answer)
    throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

async function machine(app: string, host: LabHost, more: { mounts?: object[]; env?: object }): Promise<string> {
  const service = { internal_port: 8080, autostop: "suspend", idle_timeout: 2 };
  const config = { image: COUNTER_IMAGE, init: { cmd: ["-e", APP] }, services: [service], ...more };
  await call(host, "POST", "/apps", { app_name: app });
  const made = await call(host, "POST", `/apps/${app}/machines`, { name: app, host: host.name, config });
  return String(made["machine_id"]);
}

/** How many processes of QEMU run a machine, over all hosts. */
function vmmsOf(machineId: string): number {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      if (!readlinkSync(`/proc/${pid}/exe`).includes("qemu-system")) return false;
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(machineId);
    } catch {
      return false;
    }
  }).length;
}

/** What clients saw of one machine: every answer names the process that gave it. */
class Witness {
  readonly answered: { nonce: string; count: number }[] = [];
  readonly faults: string[] = [];
  readonly #ended = new Set<string>();
  readonly #counts = new Map<string, number>();
  #current: string | undefined;

  /** Requests come one after the other, so counts of a process go up, and one that was replaced never answers again. */
  saw({ nonce, count }: { nonce: string; count: number }): void {
    if (this.#ended.has(nonce)) this.faults.push(`process ${nonce} answered after it had been replaced`);
    if (nonce !== this.#current) {
      if (this.#current !== undefined) this.#ended.add(this.#current);
      this.#current = nonce;
    }
    if (count <= (this.#counts.get(nonce) ?? 0)) this.faults.push(`process ${nonce} went back to ${count}`);
    this.#counts.set(nonce, count);
    this.answered.push({ nonce, count });
  }
}

test(`nothing acknowledged is lost and nothing runs twice in ${SECONDS} s of faults`, {
  timeout: (SECONDS + 900) * 1000,
}, async () => {
  const errors: Record<string, number> = {};
  const strange: string[] = [];
  const acknowledged = new Map<string, string[]>();
  const keepers = new Map<string, string>();
  for (const host of lab.hosts) {
    const app = `keeper-${host.name}`;
    const mounts = [{ source: "data", path: "/data", size_gb: 1 }];
    keepers.set(app, await machine(app, host, { mounts, env: { KEEP: "1" } }));
    acknowledged.set(app, []);
  }
  const [home] = lab.hosts;
  if (home === undefined) throw new Error("there is no host");
  const traveller = await machine("traveller", home, {});
  const everyone = [traveller, ...keepers.values()];
  const end = performance.now() + SECONDS * 1000;
  const going = () => performance.now() < end;
  const anyHost = () => lab.hosts[randomInt(lab.hosts.length)] as LabHost;
  const witness = new Witness();

  const note = (what: string, text: string) => {
    let code = what;
    try {
      code = String(JSON.parse(text).error);
    } catch {
      // Not an answer of the proxy.
    }
    errors[code] = (errors[code] ?? 0) + 1;
    if (!EXPECTED.has(code)) strange.push(`${code}: ${text.slice(0, 200)}`);
  };
  const asking = async (app: string, path: string) => {
    try {
      const answer = await lab.ask(anyHost(), app, path, { timeoutMs: 60_000 });
      if (answer.status === 200) return JSON.parse(answer.text) as { nonce: string; count: number };
      note(String(answer.status), answer.text);
    } catch {
      errors["no proxy"] = (errors["no proxy"] ?? 0) + 1;
    }
    await delay(200);
    return undefined;
  };
  let number = 0;
  const writer = async (app: string) => {
    while (going()) {
      const id = `w${(number += 1)}`;
      if ((await asking(app, `/write?id=${id}`)) !== undefined) acknowledged.get(app)?.push(id);
      await delay(randomInt(20, 4000)); // time to fall asleep, sometimes
    }
  };
  const visitor = async () => {
    while (going()) {
      const seen = await asking("traveller", "/");
      if (seen !== undefined) witness.saw(seen);
      await delay(randomInt(20, 4000));
    }
  };
  const doubles: string[] = [];
  const watcher = async () => {
    while (going()) {
      for (const id of everyone) if (vmmsOf(id) > 1) doubles.push(id);
      await delay(LOOK_MS);
    }
  };
  const moves = { done: 0, refused: new Map<string, number>() };
  const mover = async () => {
    while (going()) {
      await delay(randomInt(2000, 10_000));
      const to = anyHost();
      await call(anyHost(), "POST", `/apps/traveller/machines/${traveller}/move`, { host: to.name }).then(
        () => (moves.done += 1),
        (error: unknown) => {
          const [why = "no answer"] = /"error":"\w+"/.exec(String(error)) ?? [];
          moves.refused.set(why, (moves.refused.get(why) ?? 0) + 1);
        },
      );
    }
  };
  const faults: Record<string, (host: LabHost) => Promise<void>> = {
    "platform killed": async (host) => {
      await host.end("SIGKILL");
      await host.start();
    },
    "platform stopped past its lease": async (host) => {
      host.signal("SIGSTOP");
      await delay(PAST_THE_LEASE_MS);
      host.signal("SIGCONT");
    },
    "host cut off": async (host) => {
      const others = lab.hosts.filter((other) => other !== host).map((other) => other.number);
      await lab.network.partition(host.number, others);
      await delay(PAST_THE_LEASE_MS);
      await lab.network.heal(host.number);
    },
    "member of etcd killed": async (host) => {
      await lab.etcd.kill(host.number);
      await delay(CALM_MS);
      await lab.etcd.start(host.number);
    },
    "leader of etcd killed": async () => {
      const leader = await lab.etcd.leader();
      await lab.etcd.kill(leader);
      await delay(CALM_MS);
      await lab.etcd.start(leader);
    },
    "host killed with all that runs on it": async (host) => {
      await host.killAll();
      await delay(PAST_THE_LEASE_MS);
      await lab.etcd.start(host.number);
      await host.start();
    },
  };
  const done: string[] = [];
  const breaker = async () => {
    for (let turn = 0; going(); turn += 1) {
      const [name = "", fault] = Object.entries(faults)[turn % Object.keys(faults).length] ?? [];
      const host = anyHost();
      process.stderr.write(`cluster torture: ${name}: ${host.name}\n`);
      await fault?.(host);
      done.push(name);
      await delay(CALM_MS);
    }
  };
  await Promise.all([...[...keepers.keys()].map(writer), visitor(), visitor2(), watcher(), mover(), breaker()]);

  // Everything is whole again: every host answers for every machine.
  const back = performance.now() + RECOVER_MS;
  for (const [app, ids] of acknowledged) {
    let kept: string[] | undefined;
    while (kept === undefined && performance.now() < back) {
      const answer = await lab.ask(anyHost(), app, "/all").catch(() => undefined);
      if (answer?.status === 200) kept = answer.text.trim().split("\n");
      else await delay(500);
    }
    expect(kept, `${app} answers again`).toBeDefined();
    expect(
      ids.filter((id) => !kept?.includes(id)),
      `writes to ${app} that were acknowledged and are gone`,
    ).toEqual([]);
  }
  process.stderr.write(
    `cluster torture: ${JSON.stringify({ faults: done.length, moved: moves.done, refused: Object.fromEntries(moves.refused), errors, writes: number })}\n`,
  );
  expect(doubles, "machines with two virtual machines").toEqual([]);
  expect(witness.faults).toEqual([]);
  expect(strange).toEqual([]);
  expect(witness.answered.length).toBeGreaterThan(10);
  expect(moves.done).toBeGreaterThan(0);

  /** Others may ask too; only one client can say in which order it got its answers. */
  async function visitor2() {
    while (going()) {
      await asking("traveller", "/");
      await delay(randomInt(20, 3000));
    }
  }
});
