/**
 * Drills: an app is restored where nobody reaches it, woken, looked at, and gone again.
 *
 * @module-tag again
 */
import type { NetworkMachine } from "@hibernaut/network";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UserNetwork } from "../../../network/src/user.ts";
import { Home } from "../targets/helpers.ts";
import { PATIENCE_MS, Shop } from "./helpers.ts";

const PATIENT = { timeout: PATIENCE_MS };

/** A network that keeps rules, as a bridge does, and notes them. */
class Ruling extends UserNetwork {
  readonly closed = new Set<string>();

  override async requireRules(): Promise<void> {}

  override attach({ egress, ...machine }: NetworkMachine, ports: number[]) {
    if (egress?.closed === true) this.closed.add(machine.id);
    return super.attach(machine, ports);
  }
}

const COUNT = { name: "orders", command: ["count-orders"], minimum: 3 };

let network: Ruling;
let home: Home;
let shop: Shop;
/** What the command of the count prints. */
let printed: string;

beforeEach(async () => {
  network = new Ruling();
  home = await Home.open({ network });
  shop = new Shop(home);
  printed = "3\n";
  home.world.host.answer = (_id, { args }) =>
    args[0] === "count-orders" ? { output: Buffer.from(printed), ends: "at once" } : undefined;
});
afterEach(() => home.close());

test("a drill that passes says what it found, and leaves nothing", PATIENT, async () => {
  const { id } = await shop.backUp({ backup: { counts: [COUNT] } });
  const first = await shop.drill();
  expect(first).toMatchObject({
    app: "shop",
    error: null,
    machines: [{ from: id, health: "healthy", start: "resume" }],
  });
  expect(first.counts).toMatchObject([{ name: "orders", value: 3, minimum: 3, before: null, note: null }]);
  printed = "5";
  const { counts } = await shop.drill({});
  expect(counts).toMatchObject([{ value: 5, before: 3 }]);
  expect(network.closed.size, "what it finds in its memory, it would do once more").toBe(2);
  expect(network.closed).not.toContain(id);
  expect(home.platform.apps.list().map(({ name }) => name)).toEqual(["shop"]);
  expect(home.world.store.volumes.list()).toHaveLength(1);
  expect(home.events()).toEqual(["backup.complete", "backup.drill_passed", "backup.drill_passed"]);
});

test.each([
  ["2", "2 is less than 3"],
  ["many", 'it printed "many", which is not a number'],
])("a drill that counts %s fails, and says so", PATIENT, async (output, note) => {
  printed = output;
  await shop.backUp({ backup: { counts: [COUNT] } });
  const found = await shop.drill();
  expect(found.counts).toMatchObject([{ note }]);
  expect(found.error?.message).toContain(note);
  expect(home.platform.apps.list()).toHaveLength(1);
  expect(home.events().slice(-1)).toEqual(["backup.drill_failed"]);
});

test("a machine that does not come up fails the drill, and one that was stopped is left alone", {
  tags: "again",
}, async () => {
  const { platform } = shop;
  platform.apps.create("job");
  const { record } = await platform.machines.create("job", {
    config: { image: "app:1", guest: { memory_mb: 128 } },
    skipLaunch: true,
  });
  await shop.backUp();
  home.world.host.faults = { restore: new Error("no"), boot: new Error("no room for the guest") };
  const failed = await shop.drill();
  expect(failed).toMatchObject({ machines: [{ health: "failed" }] });
  expect(failed.error?.message).toMatch(/did not get healthy: .*no room for the guest/);
  expect(await shop.drill({ app: "job" })).toMatchObject({
    error: null,
    outcome: "untried",
    machines: [{ from: record.id, health: "stopped", start: null }],
  });
  expect(home.events().slice(-2)).toEqual(["backup.drill_failed", "backup.drill_untried"]);
});

test(
  "what is configured to be counted is counted, also where the machine was stopped, or the drill fails",
  PATIENT,
  async () => {
    const { platform } = shop;
    const { id } = await shop.backUp({ backup: { counts: [COUNT] } });
    await shop.wake("shop", id);
    platform.machines.stop("shop", id);
    await platform.machines.wait("shop", id, ["stopped"], { timeoutMs: 5000 });
    await home.backUp();
    expect(await shop.drill()).toMatchObject({ outcome: "passed", counts: [{ value: 3 }] });
    home.world.host.faults = { boot: new Error("no room for the guest") };
    expect(await shop.drill()).toMatchObject({ outcome: "failed", counts: [{ value: null }] });
  },
);

test("a drill that finds no app is told, and counts for no app", PATIENT, async () => {
  await home.add();
  await shop.platform.appRestores.drill("disk", {});
  const target = await shop.idle();
  expect(target).toMatchObject({ drills: [], lastDrill: { app: "", outcome: "failed", error: { code: "not_found" } } });
});

test("where machines could reach others, there is no drill", PATIENT, async () => {
  await shop.backUp();
  await home.stop();
  await home.start();
  const { error } = await shop.drill();
  expect(error).toMatchObject({ code: "failed_precondition", message: expect.stringMatching(/bridge/) });
  expect(home.platform.apps.list()).toHaveLength(1);
});

test("scheduled drills take the app whose turn it is", PATIENT, async () => {
  let now = Date.parse("2026-11-28T00:00:00Z");
  await home.stop();
  await home.start({ network, now: () => new Date(now) });
  const { platform } = shop;
  platform.apps.create("job");
  await platform.machines.create("job", { config: { image: "app:1", guest: { memory_mb: 128 } }, skipLaunch: true });
  await shop.backUp();
  await home.targets.update("disk", { drillSchedule: "0 5 * * *" });
  expect(await home.targets.dueDrills()).toEqual([]);
  const tried: string[] = [];
  for (let day = 0; day < 3; day += 1) {
    now += 24 * 60 * 60_000;
    await vi.waitFor(async () => expect(await home.targets.dueDrills()).toEqual(["disk"]));
    tried.push((await shop.drill({})).app);
    expect(await home.targets.dueDrills()).toEqual([]);
  }
  expect(tried).toEqual(["job", "shop", "job"]);
});
