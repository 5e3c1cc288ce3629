/** The platform is killed at every step of the first start after an upgrade of QEMU and of the guest bundle. */
import { afterEach, describe, expect, test } from "vitest";
import { FailedCarryOvers } from "../../hypervisor/src/qemu/failed-carry-overs.ts";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { newWorld, runningMachine, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import type { Resources } from "../src/open.ts";
import { firstOfEach, stepsOf, untilDeath } from "./until-death.ts";

const TIMEOUT = { timeoutMs: 5000 };
const qemu = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);

/** A resume in the new QEMU works, or fails, and the machine then starts cold. */
const KINDS = ["works", "fails"] as const;
type Kind = (typeof KINDS)[number];

interface Before {
  id: string;
  nonce: string | undefined;
  version: string;
}

let world: World | undefined;
afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** A machine sleeps, and the host is upgraded. */
async function upgraded(): Promise<{ world: World; before: Before }> {
  const made = await newWorld();
  world = made;
  made.identity = qemu("7.2.18");
  const platform = await startPlatform(made);
  const id = await runningMachine(platform);
  const nonce = made.host.guest(id)?.request()?.nonce;
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
  const { version } = platform.machines.get("shop", id).record;
  await platform.close();
  made.identity = qemu("7.2.22");
  made.bundleVersion = "bundle-2";
  return { world: made, before: { id, nonce, version } };
}

async function firstStart({ machines }: Resources, { id }: Before): Promise<void> {
  await machines.update("shop", id);
  machines.start("shop", id);
  await machines.wait("shop", id, ["running"], TIMEOUT);
}

async function startUntilDeath(mortality: Mortality, kind: Kind): Promise<{ world: World; before: Before }> {
  const about = await upgraded();
  if (kind === "fails") about.world.host.faults.restore = new Error("Unknown savevm section");
  // It may die while it recovers, and then never finishes starting.
  const started = startPlatform(about.world, { wrap: (deps) => mortality.wrap(deps) });
  await untilDeath(
    mortality,
    started.then((platform) => firstStart(platform, about.before)),
  );
  about.world.host.faults = {};
  return about;
}

const rehearsals: { kind: Kind; name: string; step: number }[] = [];
for (const kind of KINDS) {
  const mortality = new Mortality();
  const { world: rehearsed } = await startUntilDeath(mortality, kind);
  await rehearsed.dispose();
  world = undefined;
  rehearsals.push(...stepsOf(mortality).map((one) => ({ kind, ...one })));
}

test("the rehearsals cover both ends of the first start", () => {
  const names = (kind: Kind) => rehearsals.filter((one) => one.kind === kind).map(({ name }) => name);
  expect(names("works")).toEqual(expect.arrayContaining(["snapshots.fitting", "hypervisor.restore", "vmm.run"]));
  expect(names("fails")).toEqual(expect.arrayContaining(["carryOvers.failed", "snapshots.discard", "hypervisor.boot"]));
});

const both = KINDS.map((kind) => firstOfEach(rehearsals.filter((one) => one.kind === kind)));
const first = both.flatMap((of) => of.first);
const others = both.flatMap((of) => of.others);

test.each(first)("killed before step $step of a resume that $kind, the first $name", (one) =>
  dieAndStart(one, "before"),
);

// kill.test.ts has every step of a life. After one step is mostly before the next.
describe("killed at every other step", { tags: "again" }, () => {
  test.each(others)("before step $step of a resume that $kind, $name", (one) => dieAndStart(one, "before"));
  test.each(rehearsals)("after step $step of a resume that $kind, $name", (one) => dieAndStart(one, "after"));
});

/** Kills the platform at this step of a first start, and sees what the next one makes of it. */
async function dieAndStart({ kind, step }: { kind: Kind; step: number }, when: "before" | "after"): Promise<void> {
  const { world: found, before } = await startUntilDeath(new Mortality(step, when), kind);
  const { id } = before;
  const platform = await startPlatform(found);
  const { machines } = platform;
  try {
    await machines.wait("shop", id, ["settled"], TIMEOUT);
    machines.start("shop", id);
    await machines.wait("shop", id, ["running"], TIMEOUT);
    const { record } = machines.get("shop", id);
    const answer = found.host.guest(id)?.request();
    // The machine is the old one with its bundle, or it has moved as a whole.
    const moved = record.bundleVersion === "bundle-2";
    expect(record.version === before.version, record.bundleVersion).toBe(!moved);
    if (moved) expect(record.bundleMove).toBeNull();
    if (moved) expect(record.lastBoot?.kind).toBe("cold");
    if (kind === "works" && record.lastBoot?.kind === "resume") expect(answer?.nonce).toBe(before.nonce);
    // What the history says about the versions is known to the next platform.
    const told = machines.events("shop", id, 99).some(({ type }) => type === "carry_over_failed");
    const { all } = await FailedCarryOvers.open(found.folder);
    if (told) expect(all).toEqual([{ from: "7.2.18", to: "7.2.22" }]);
    if (kind === "works") expect(all).toEqual([]);
    expect(found.host.mostPerMachine).toBeLessThanOrEqual(1);
    expect(new Set(found.host.restored).size).toBe(found.host.restored.length);
  } finally {
    await platform.close();
  }
}
