/** A start that is called off while its jail is made: whenever that is, no process of it stays. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { JAIL_LAUNCHER } from "@hibernaut/settings/places";
import { expect, test } from "vitest";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { argumentsOf } from "../../src/qemu/find-processes.ts";
import { launcherArguments } from "../../src/qemu/jail/arguments.ts";
import { killProcess, spawnDetached } from "../../src/qemu/process.ts";

/** A jail is made within 20 ms on a quiet host. The later moments find the program running on a busy one too. */
const MOMENTS_MS = Array.from({ length: longOr(60, 20) }, (_, index) => index * longOr(0.5, 1.5));

/** The ids of all processes, launchers too, that have this among their arguments. */
async function processesWith(marker: string): Promise<number[]> {
  const all = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(all.map(async (pid) => (await argumentsOf(pid)).includes(marker)));
  return all.filter((_, index) => found[index]);
}

test("a start that is called off at any moment leaves no process, or had started its program by then", async () => {
  const folder = await tempFolder("cut-short");
  const sockets = { qmp: join(folder, "qmp.sock"), agent: join(folder, "agent.sock") };
  const marker = `600.${process.pid}`; // seconds that nobody else sleeps
  const args = launcherArguments({
    program: "/usr/bin/sleep",
    root: folder,
    groups: [],
    ownNetwork: false,
    places: { read: ["/usr"], write: [], devices: [], links: { "/lib": "usr/lib", "/lib64": "usr/lib64" } },
    listen: sockets,
    nice: 0,
    limits: {},
  });
  const jail = { program: JAIL_LAUNCHER, args };
  const outcomes = { started: 0, calledOff: 0 };
  for (const moment of MOMENTS_MS) {
    for (const socket of Object.values(sockets)) await rm(socket, { force: true });
    const calledOff = new AbortController();
    const options = { machineId: "0".repeat(14), log: join(folder, "log"), jail, signal: calledOff.signal };
    const starting = spawnDetached("sleep", [marker], options);
    void delay(moment).then(() => calledOff.abort(new Error("called off")));
    const started = await starting.catch((error: Error) => {
      expect(error).toBe(calledOff.signal.reason);
      return undefined;
    });
    outcomes[started === undefined ? "calledOff" : "started"] += 1;
    if (started !== undefined) await killProcess(started.ref);
    await expect.poll(() => processesWith(marker), { message: `called off after ${moment} ms` }).toEqual([]);
  }
  expect(outcomes.calledOff).toBeGreaterThan(0);
});
