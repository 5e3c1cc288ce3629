/** What a guest that has broken out of QEMU may take of the host, where the host has control groups of version 2. */
import { existsSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cgroups } from "../../src/qemu/jail/cgroups.ts";
import { FORK } from "./attempts.ts";
import { Prison } from "./stand-in.ts";

const MOUNT = "/sys/fs/cgroup";
const OWNER = `/cgroups-${process.pid}`;
const CONTROLLERS = join(MOUNT, "cgroup.controllers");
const controllers = existsSync(CONTROLLERS) ? readFileSync(CONTROLLERS, "utf8").split(/\s/) : [];
const can = process.getuid?.() === 0 && ["cpu", "memory", "pids"].every((name) => controllers.includes(name));

let cgroups: Cgroups;
let prison: Prison;
beforeAll(async () => {
  if (!can) return;
  const opened = await Cgroups.open(OWNER);
  if (typeof opened === "string") throw new Error(opened);
  cgroups = opened;
  prison = await Prison.open({ root: true });
});
afterAll(async () => {
  if (!can) return;
  await prison.close();
  await cgroups.close();
});

test.runIf(can)("memory without end is the end of the program alone", async () => {
  const said = await prison.run('my @all; push @all, "x" x (1 << 26) while @all < 64; print "all of it";', { cgroups });
  expect(said).toMatch(/^ended with SIGKILL/);
});

test.runIf(can)("every process that it starts is counted", async () => {
  const said = await prison.run(FORK, { cgroups });
  expect(Number(said.split(" ")[0])).toBeLessThan(256);
  expect(said).toContain("Resource temporarily unavailable");
});

test.runIf(can)("it gets no more CPU than the machine has, and a half", async () => {
  const began = performance.now();
  const busy =
    "for (1..4) { fork() or do { my $end = time + 3; 1 while time < $end; exit } } 1 while wait != -1; print join(' ', times)";
  const [, , user = 0, system = 0] = (await prison.run(busy, { cgroups })).split(" ").map(Number);
  const seconds = (performance.now() - began) / 1000;
  expect(user + system).toBeGreaterThan(0);
  expect(user + system).toBeLessThan(1.5 * seconds + 0.5);
});

test.runIf(can)("no group stays when programs have ended", async () => {
  await cgroups.close();
  const ours = (await readdir(MOUNT)).filter((name) => name.startsWith("hibernaut-"));
  for (const name of ours)
    expect((await readdir(join(MOUNT, name))).filter((one) => one.startsWith("0000"))).toEqual([]);
});
