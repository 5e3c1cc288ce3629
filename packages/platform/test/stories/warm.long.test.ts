/** Warm sleep at its limits: many machines, a small budget, a lack of memory, and processes that are killed at random. */
import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { usageOf } from "@hibernaut/hypervisor/qemu/process";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Answer } from "../helpers/http.ts";
import { PATIENT } from "../helpers/patient.ts";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";
import { packSmallApp, SMALL_APP } from "../helpers/small-app/image.ts";

const LIMIT_MS = 30 * 60_000;
const MACHINES = 50;
/** Of these, about this many fit. */
const ROOM_FOR = 10;
/** Memory of one of them: many are to fit next to each other. */
const GUEST_MB = 128;
const KILLS = 60;
/** The earliest moment is this long before the request. */
const AHEAD_MS = 10;
/** Wakes that tell how long one takes on this host: a kill comes at any moment of it, or soon after it. */
const REHEARSALS = 5;
const BEYOND = 1.5;
const MB = 1024 * 1024;
/** The controller of version 1 or 2, whichever this host has. */
const GROUPS = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].find((folder) => existsSync(join(folder, "cgroup.procs")));

async function open(env: Record<string, string> = {}): Promise<Place> {
  await packSmallApp();
  const place = await Place.open({ ...PATIENT, ...WARM, ...env });
  onTestFinished(async () => {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  });
  return place;
}

const visit = (place: Place, app: string) => ask({ proxyUrl: place.proxyUrl, app });

/** How many kept VMMs have ended, by reason. */
async function evictionsOf(place: Place): Promise<Record<string, number>> {
  const lines = (await place.metrics()).matchAll(/^hibernaut_warm_evictions_total\{reason="(\w+)"\} (\d+)$/gm);
  const all = [...lines].map(([, reason = "", count]) => [reason, Number(count)] as const);
  return Object.fromEntries(all.filter(([, count]) => count > 0));
}

/** Makes an app of its own for each machine, so that a request names the machine. */
async function machines(place: Place, count: number): Promise<{ app: string; id: string; nonce: string }[]> {
  const made: { app: string; id: string; nonce: string }[] = [];
  for (let index = 0; index < count; index += 1) {
    const app = index === 0 ? place.app : `warm-${index}`;
    if (index > 0) {
      await place.client.createApp(app);
      onTestFinished(() => place.client.destroyApp(app, { force: true }).catch(() => {}));
    }
    const config = { image: SMALL_APP, guest: { memory_mb: GUEST_MB }, services: [{ internal_port: 8080 }] };
    const { machine_id: id } = await place.client.createMachine(app, { config });
    await place.client.waitForMachine(app, id, { state: "running", timeout: 120 });
    made.push({ app, id, nonce: counterOf(await visit(place, app)).nonce });
  }
  return made;
}

async function suspend(place: Place, { app, id }: { app: string; id: string }): Promise<void> {
  await place.client.suspendMachine(app, id);
  await place.client.waitForMachine(app, id, { state: "suspended", timeout: 120 });
}

test(`${MACHINES} machines asleep, a budget for ${ROOM_FOR}: all wake at once`, { timeout: LIMIT_MS }, async () => {
  const place = await open({ HIBERNAUT_KEEP_WARM_MEMORY: `${ROOM_FOR * 64}mb`, HIBERNAUT_KEEP_WARM: "1h" });
  const all = await machines(place, MACHINES);
  for (const machine of all) await suspend(place, machine);
  // What has to go is ended in the background.
  await vi.waitFor(async () => expect(await place.processes()).toHaveLength((await warmOf(place, all)).length), 30_000);
  const warm = await warmOf(place, all);
  const refs = await place.processes();
  const bytes = await Promise.all(refs.map(async (ref) => (await usageOf(ref))?.anonymousBytes ?? 0));
  const sum = bytes.reduce((total, each) => total + each, 0);
  expect(sum).toBeLessThanOrEqual(ROOM_FOR * 64 * MB * 1.1);
  expect(sum + Math.max(...bytes), "no more than had to go").toBeGreaterThan(ROOM_FOR * 64 * MB * 0.8);
  expect(await evictionsOf(place), "only the budget, and no other reason").toEqual({ budget: MACHINES - warm.length });
  expect(warm, "those that fell asleep last").toEqual(all.slice(-warm.length).map(({ id }) => id));
  const answers = await Promise.all(
    all.map(async ({ app, nonce }) => {
      const began = performance.now();
      const answer = await visit(place, app);
      expect(answer.status, answer.text).toBe(200);
      expect(counterOf(answer).nonce).toBe(nonce);
      return { kind: wakeOf(answer).kind, ms: performance.now() - began };
    }),
  );
  const kinds = Object.groupBy(answers, ({ kind }) => kind);
  for (const [kind, some = []] of [["all", answers] as const, ...Object.entries(kinds)]) {
    const waits = some.map(({ ms }) => Math.round(ms)).toSorted((one, other) => one - other);
    const at = (share: number) => waits[Math.ceil(share * waits.length) - 1];
    console.log(`${kind}: ${some.length} machines, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
  }
  expect(kinds.warm).toHaveLength(warm.length);
});

async function warmOf(place: Place, all: { app: string; id: string }[]): Promise<string[]> {
  const found = await Promise.all(all.map(({ app, id }) => place.client.getMachine(app, id)));
  return found.filter(({ snapshot }) => (snapshot?.warm_until ?? null) !== null).map(({ machine_id: id }) => id);
}

test.skipIf(GROUPS === undefined || process.getuid?.() !== 0)(
  "a control group that fills up: what is kept goes, and what runs stays",
  { timeout: LIMIT_MS },
  async () => {
    const group = join(GROUPS ?? "", `hibernaut-warm-${process.pid}`);
    const v1 = group.includes("/memory/");
    await mkdir(group);
    onTestFinished(() => rmdir(group));
    const place = await open({ HIBERNAUT_KEEP_WARM: "1h" });
    const limit = (bytes: number) => writeFile(join(group, v1 ? "memory.limit_in_bytes" : "memory.max"), String(bytes));
    await writeFile(join(group, "cgroup.procs"), String(place.served.pid));
    const all = await machines(place, 4);
    const [awake, ...sleepers] = all;
    for (const machine of sleepers) await suspend(place, machine);
    expect(await place.processes()).toHaveLength(4);
    const used = v1 ? /^total_rss (\d+)/m : /^anon (\d+)/m;
    const bytes = Number(used.exec(await readFile(join(group, "memory.stat"), "utf8"))?.[1]);
    // Nearly full of what the kernel cannot drop.
    await limit(Math.round(bytes * 1.05));
    await vi.waitFor(async () => expect((await place.processes()).length).toBeLessThan(4), 60_000);
    const left = await place.processes();
    expect(left.map(({ machineId }) => machineId)).toContain(awake?.id);
    const { pressure, ...others } = await evictionsOf(place);
    expect(pressure).toBeGreaterThan(0);
    expect(others, "the kernel has killed none").toEqual({});
    await limit(-1).catch(() => writeFile(join(group, "memory.max"), "max"));
    for (const { app, nonce } of all) expect(counterOf(await visit(place, app)).nonce).toBe(nonce);
  },
);

test(`a kept process is killed at ${KILLS} random moments around a request`, { timeout: LIMIT_MS }, async () => {
  const place = await open();
  const [machine] = await machines(place, 1);
  if (machine === undefined) throw new Error("there is no machine");
  const wakes: number[] = [];
  for (let round = 0; round < REHEARSALS; round += 1) {
    await suspend(place, machine);
    const began = performance.now();
    expect(wakeOf(await visit(place, machine.app)).kind).toBe("warm");
    wakes.push(performance.now() - began);
  }
  const latestMs = Math.ceil(BEYOND * Math.max(...wakes));
  let last = counterOf(await visit(place, machine.app));
  /** A snapshot that ran twice would count again what it had counted. */
  const goesOn = (visited: Answer) => {
    const now = counterOf(visited);
    if (now.nonce === last.nonce) expect(now.count, "a snapshot ran twice").toBeGreaterThan(last.count);
    last = now;
  };
  const tally: Record<string, number> = {};
  for (let round = 0; round < KILLS; round += 1) {
    await suspend(place, machine);
    const [vmm] = await place.processes();
    if (vmm === undefined) throw new Error("nothing is kept");
    const moment = randomInt(-AHEAD_MS, latestMs);
    const answered = delay(Math.max(0, -moment))
      .then(() => visit(place, machine.app))
      .catch((error: NodeJS.ErrnoException) => error);
    await delay(Math.max(0, moment));
    process.kill(vmm.pid, "SIGKILL");
    const answer = await answered;
    if (answer instanceof Error) {
      // The guest ran, and was killed in the middle of its answer.
      expect([answer.code, moment > 0], `killed after ${moment} ms`).toEqual(["ECONNRESET", true]);
      tally.cut = (tally.cut ?? 0) + 1;
      goesOn(await visit(place, machine.app));
      continue;
    }
    expect(answer.status, `killed after ${moment} ms: ${answer.text}`).toBe(200);
    const before = last;
    goesOn(answer);
    const { kind } = wakeOf(answer);
    tally[kind] = (tally[kind] ?? 0) + 1;
    if (last.nonce !== before.nonce) {
      // Only a guest that ran again can be lost: its snapshot was spent by then.
      expect(moment, "the snapshot held its memory").toBeGreaterThan(0);
      const { last_boot: boot } = await place.client.getMachine(machine.app, machine.id);
      expect(boot?.reason).toMatch(/^(vmm_lost|resume_failed|resume_lost)/);
    }
    // The kill may have hit it right after its answer.
    goesOn(await visit(place, machine.app));
  }
  console.log(`killed from ${-AHEAD_MS} to ${latestMs} ms after the request; woken: ${JSON.stringify(tally)}`);
});
