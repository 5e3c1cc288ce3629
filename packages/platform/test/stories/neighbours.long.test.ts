/**
 * An app whose neighbours want everything: machines that print, fork, fill their disks, connect and ask without end, and
 * clients that open connections, send slow bodies and reset streams. Its requests never fail, and the platform has at the
 * end what it had at the beginning. `HIBERNAUT_SOAK` sets how long, such as `5m`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { otherComputer } from "../../../network/test/rig.ts";
import { PATIENT } from "../helpers/patient.ts";
import { ask } from "../helpers/proxied.ts";
import { selfSigned } from "../helpers/self-signed.ts";
import { Place } from "../helpers/served.ts";
import { compileStatic, packSmallApp, writeImage } from "../helpers/small-app/image.ts";
import { soakSeconds, told, vitalsOf } from "../helpers/soak.ts";
import { useTempFolder } from "../helpers/temp.ts";

const SECONDS = soakSeconds();
/** The part of the time in which nobody else is there, to compare with. */
const QUIET = 0.2;
/** In which hostile machines boot, in seconds, and live their first minute, in which nobody comes before them. */
const BOOTING = 75;
/** Between the polite client's requests. */
const PAUSE_MS = 50;
const PROGRESS_MS = 60_000;
/** Machines start before the time, and end after it. */
const MORE_MS = 900_000;
/** How long the kernel and the garbage collector may take until what is gone is no longer counted. */
const SETTLE_MS = 90_000;
/** As in the soak of apps that sleep. */
const MORE_FILES = 8;
const MORE_MB = 96;

const HOSTILE_APP = join(import.meta.dirname, "../helpers/hostile-app/app.c");
const CLIENT = join(import.meta.dirname, "../helpers/hostile-client.ts");
const COLLECT = join(import.meta.dirname, "../helpers/collect-garbage.mjs");
const tell = (text: string) => process.stderr.write(`neighbours: ${text}\n`);

const tlsPort = await freePort();
const folder = useTempFolder("neighbours");
beforeAll(async () => {
  await packSmallApp();
  selfSigned(folder.path, "_.localhost", ["*.localhost"]);
});
const place = Place.forTests(() => ({
  ...PATIENT,
  // Machines reach it, too, at the bridge's address.
  HIBERNAUT_PROXY_LISTEN: "0.0.0.0:0",
  HIBERNAUT_PROXY_TLS_LISTEN: `0.0.0.0:${tlsPort}`,
  HIBERNAUT_PROXY_TLS_FOLDER: folder.path,
  NODE_OPTIONS: `--import=${COLLECT}`,
  HIBERNAUT_LOG_LEVEL: "warn",
}));

/** What hostile machines do. They reach the proxy at the bridge's address, which is the first of its network. */
function deeds(proxyUrl: string, neighbour: string): Record<string, string[]> {
  const { port } = new URL(proxyUrl);
  const gateway = neighbour.replace(/\.\d+$/, ".1");
  return {
    print: ["print"],
    fork: ["fork"],
    fill: ["fill", "/tmp/full"],
    connect: ["connect", gateway, port],
    half: ["half", gateway, port],
    dns: ["dns", gateway],
    flows: ["flows", gateway],
  };
}

/** The times of requests, and those that failed. */
class Polite {
  readonly failures: string[] = [];
  times: number[] = [];

  /** One request after the other until the signal aborts, half of them over a kept connection. */
  async visit(until: AbortSignal): Promise<void> {
    const agent = new Agent({ keepAlive: true });
    for (let visit = 0; !until.aborted; visit += 1) {
      const began = performance.now();
      try {
        const target = { proxyUrl: place.proxyUrl, app: place.app };
        const { status, text } = await ask(target, "/", visit % 2 === 0 ? { agent } : {});
        if (status !== 200) throw new Error(`${status} ${text}`);
        this.times.push(performance.now() - began);
      } catch (error) {
        this.failures.push(`${new Date().toISOString()} ${String(error)}`);
      }
      await delay(PAUSE_MS, undefined, { signal: until }).catch(() => {}); // aborted: the loop ends
    }
    agent.destroy();
  }

  /** Visits for this long. Returns percentiles in milliseconds. */
  async visitFor(seconds: number, during = ""): Promise<{ p50: number; p99: number; requests: number }> {
    this.times = [];
    const over = AbortSignal.timeout(seconds * 1000);
    const progress = setInterval(
      () => tell(`${during}: ${this.times.length} requests, ${this.failures.length} failed`),
      PROGRESS_MS,
    );
    await this.visit(over);
    clearInterval(progress);
    const sorted = this.times.toSorted((a, b) => a - b);
    const at = (part: number) => Math.round((sorted[Math.floor(sorted.length * part)] ?? 0) * 10) / 10;
    return { p50: at(0.5), p99: at(0.99), requests: sorted.length };
  }
}

/** Hosts of hostile clients: this host's address on the cable to each, and its own (RFC 2544). */
const COMPUTERS = [
  { here: "198.18.77.1", there: "198.18.77.2" },
  { here: "198.18.77.5", there: "198.18.77.6" },
];

/** Starts a hostile client on another host, which ends with the test. It gets the CPUs that nobody wants: in life it has its own. */
function client(computer: string, ...args: string[]): ChildProcess {
  const command = ["netns", "exec", computer, process.execPath, CLIENT, ...args];
  const child = spawn("ip", command, { stdio: ["ignore", "inherit", "inherit"], detached: true });
  const { pid = 0 } = child;
  setPriority(pid, constants.priority.PRIORITY_LOW);
  // Many kernels share CPUs among sessions first.
  if (existsSync(`/proc/${pid}/autogroup`)) writeFileSync(`/proc/${pid}/autogroup`, "19");
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Two hosts of hostile clients, and what runs there. */
async function hostileClients(): Promise<ChildProcess[]> {
  const host = `${place.app}.localhost`;
  const { port } = new URL(place.proxyUrl);
  const clients = [];
  for (const addresses of COMPUTERS) {
    const { name } = await otherComputer(addresses);
    const { here, there } = addresses;
    clients.push(client(name, "idle", `http://${here}:${port}`, there, host));
    if (clients.length === 1) clients.push(client(name, "bodies", `http://${here}:${port}`, there, host));
    else clients.push(client(name, "resets", `https://${here}:${tlsPort}`, there, host));
  }
  return clients;
}

test(`a polite app among hostile ones for ${SECONDS} s: no request fails, and nothing stays taken`, {
  timeout: SECONDS * 1000 + MORE_MS,
}, async () => {
  const program = join(folder.path, "hostile");
  await compileStatic(HOSTILE_APP, program);
  await writeImage(join(folder.path, "layout"), program, []);
  const image = `oci:${join(folder.path, "layout")}:latest`;
  const { private_address: address } = await place.machine();
  const polite = new Polite();
  await polite.visitFor(10, "warming up");
  const began = await vitalsOf(place.served.pid);
  const quiet = await polite.visitFor(SECONDS * QUIET, "quiet");
  tell(`quiet: ${JSON.stringify(quiet)}; ${told(began)}`);

  const machines = Object.entries(deeds(place.proxyUrl, address));
  for (const [deed, cmd] of machines) {
    await place.client.createApp(`hostile-${deed}`);
    const config = { image, init: { cmd }, restart: { policy: "always" as const } };
    await place.client.createMachine(`hostile-${deed}`, { config });
  }
  const clients = await hostileClients();
  tell(`while they start: ${JSON.stringify(await polite.visitFor(BOOTING))}`);
  const busy = await polite.visitFor(SECONDS * (1 - QUIET), "with neighbours");
  tell(
    `with neighbours: ${JSON.stringify(busy)}, ${(busy.p99 / quiet.p99).toFixed(1)} times the quiet p99; ${told(await vitalsOf(place.served.pid))}`,
  );
  for (const { exitCode, signalCode } of clients)
    expect([exitCode, signalCode], "hostile clients are at it to the end").toEqual([null, null]);

  for (const one of clients) one.kill("SIGKILL");
  await Promise.all(clients.map(async (one) => one.exitCode ?? one.signalCode ?? (await once(one, "exit"))));
  for (const [deed] of machines) await place.client.destroyApp(`hostile-${deed}`, { force: true });
  await expect
    .poll(() => vitalsOf(place.served.pid).then(({ files }) => files), { timeout: SETTLE_MS })
    .toBeLessThanOrEqual(began.files + MORE_FILES);
  process.kill(place.served.pid, "SIGUSR2");
  const after = await polite.visitFor(10, "afterwards");
  const ended = await vitalsOf(place.served.pid);
  tell(`afterwards: ${JSON.stringify(after)}; ${told(ended)}`);

  expect(polite.failures).toEqual([]);
  expect(ended.memoryMb).toBeLessThanOrEqual(began.memoryMb + MORE_MB);
});
