/** Warm sleep with real guests: a cache of the snapshot, which can go at any moment without anything being lost. */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { outOfCache } from "../../../../bench/proxy/wake-files.mjs";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { ACCELERATOR } from "../helpers/qemu-world.ts";
import { Place, WARM } from "../helpers/served.ts";
import { diskFolder } from "../helpers/temp.ts";

const LIMIT_MS = 60_000;
const MB = 1024 * 1024;
/** What a kept VMM may hold under KVM, besides the guest's memory. Under emulation, it also holds the translated code. */
const MOST_UNDER_KVM_MB = 40;

const place = Place.forTests(WARM, diskFolder());
let id: string;
/** What the app said last. */
let last: { nonce: string; count: number };
beforeAll(async () => {
  ({ machine_id: id } = await place.machine());
  last = counterOf(await visit());
});

const visit = () => ask({ proxyUrl: place.proxyUrl, app: place.app });

/** One request, which finds the machine's memory as it was. Returns how it was woken. */
async function wake(): Promise<string> {
  const asked = Date.now();
  const answer = await visit();
  const answered = Date.now();
  expect(answer.status, answer.text).toBe(200);
  const said = counterOf(answer);
  expect(said).toMatchObject({ nonce: last.nonce, count: last.count + 1 });
  const now = Date.parse(said.now);
  expect(Math.max(asked - now, now - answered), "the clock is right").toBeLessThan(500);
  last = said;
  return wakeOf(answer).kind;
}

/** The one QEMU that the sleeping machine keeps. */
async function kept(): Promise<number> {
  const [vmm, ...more] = await place.processes();
  expect(more).toEqual([]);
  if (vmm === undefined) throw new Error("nothing is kept");
  return vmm.pid;
}

test("a request wakes the process that was kept, again and again", async () => {
  for (let cycle = 0; cycle < 5; cycle += 1) {
    await place.suspend(id);
    expect((await place.get(id)).snapshot?.warm_until).toEqual(expect.any(String));
    const pid = await kept();
    expect(await wake()).toBe("warm");
    expect(await kept()).toBe(pid);
  }
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "warm", reason: "snapshot" });
});

/** The value of a metric. */
async function metric(name: string): Promise<number> {
  const line = (await place.metrics()).split("\n").find((each) => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

test("the kept process holds a known amount of memory besides the machine's own", {
  tags: "again",
}, async () => {
  await place.suspend(id);
  const held = (await metric("hibernaut_warm_bytes")) / MB;
  console.log(`     a kept process holds ${held.toFixed(1)} MB besides the machine's memory, under ${ACCELERATOR}`);
  expect(held).toBeGreaterThan(1);
  if (ACCELERATOR === "kvm") expect(held).toBeLessThanOrEqual(MOST_UNDER_KVM_MB);
  expect(await wake()).toBe("warm");
});

test("its time is over: the process ends, and the snapshot is resumed", { tags: "again" }, async () => {
  await place.served.stop();
  await place.served.start({ HIBERNAUT_KEEP_WARM: "1s" });
  await place.suspend(id);
  await vi.waitFor(async () => expect(await place.processes()).toEqual([]), LIMIT_MS);
  expect(await metric('hibernaut_warm_evictions_total{reason="expired"}')).toBe(1);
  expect((await place.get(id)).snapshot?.warm_until).toBe(null);
  expect(await wake()).toBe("resume");
  await place.served.stop();
  await place.served.start();
});

test("the kept process does not answer: it is ended, and the snapshot resumed", {
  tags: "again",
  timeout: LIMIT_MS,
}, async () => {
  await place.suspend(id);
  const pid = await kept();
  process.kill(pid, "SIGSTOP");
  expect(await wake()).toBe("resume");
  expect(await kept()).not.toBe(pid);
});

test("the platform is killed: the next one ends the kept process, and resumes the snapshot", {
  tags: "again",
}, async () => {
  await place.suspend(id);
  await place.served.kill();
  await kept();
  await place.served.start();
  await vi.waitFor(async () => expect(await place.processes()).toEqual([]), LIMIT_MS);
  expect(await wake()).toBe("resume");
});

test("everything dies, and the page cache with it: the disk has it all", async () => {
  await place.suspend(id);
  await place.served.kill();
  process.kill(await kept(), "SIGKILL");
  await vi.waitFor(async () => expect(await place.processes()).toEqual([]), LIMIT_MS);
  const machine = join(place.dataDir, "machines", id);
  const files = await readdir(machine, { recursive: true, withFileTypes: true });
  outOfCache(files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name)));
  await place.served.start();
  expect(await wake()).toBe("resume");
});

test("the platform ends: nothing that it kept is left", { tags: "again" }, async () => {
  await place.suspend(id);
  await kept();
  await place.served.stop();
  expect(await place.processes()).toEqual([]);
  await place.served.start();
  expect(await wake()).toBe("resume");
});
