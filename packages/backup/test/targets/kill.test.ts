/**
 * The platform is killed at every step of a backup to a target: nothing half done counts, and the next platform makes a backup from
 * which everything comes back.
 */
import { join } from "node:path";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { PieceSums } from "../../src/targets/piece-sums.ts";
import { Repository } from "../../src/targets/repository.ts";
import { TargetFile } from "../../src/targets/target-file.ts";
import { Home, patient, restore, run } from "./helpers.ts";

const TWO_DAYS_MS = 2 * 24 * 60 * 60_000;
/** What a backup does outside its process, in this order. Between two of them, it only thinks. */
const STEPS = [
  ...["removeStaleLocks", "snapshots", "manifests"],
  ...["store layout.tar", "store database.tar", "store files.tar"],
  ...["save", "snapshots", "check"],
  ...["store manifest.json", "compare manifest.json", "snapshots", "remember manifest.json"],
  ...["manifests", "forget", "update", "update"],
];

/** A platform that has made one backup, two days ago: its data directory, its repository as it was then, and the key. */
let past: { data: string; pristine: string; url: string; key: string };
const folder = useTempFolder("past");
let home: Home | undefined;

beforeAll(async () => {
  const first = await Home.open({ now: () => new Date(Date.now() - TWO_DAYS_MS) });
  first.platform.apps.create("shop");
  const target = await first.add({ url: join(folder.path, "target"), keep: "1d" });
  await first.backUp();
  await first.stop();
  past = { ...target, data: join(folder.path, "data"), pristine: join(folder.path, "pristine") };
  await run("cp", ["-a", first.world.folder, past.data]);
  await run("cp", ["-a", past.url, past.pristine]);
  await first.world.dispose();
}, 120_000);

afterEach(async () => {
  vi.restoreAllMocks();
  await home?.close();
  home = undefined;
});

async function begin(): Promise<Home> {
  await run("rm", ["-rf", past.url]);
  await run("cp", ["-a", past.pristine, past.url]);
  home = await Home.open({}, async (data) => void (await run("cp", ["-a", `${past.data}/.`, data])));
  return home;
}

/** Backs up. After a number of steps, the platform ends: nothing returns any more. Resolves with the steps until then. */
async function backUpUntilDeath(place: Home, after: number): Promise<string[]> {
  const steps: string[] = [];
  const death = Promise.withResolvers<void>();
  const die = () => {
    death.resolve();
    return new Promise<never>(() => {});
  };
  const watch = (owner: object, names: readonly string[]) => {
    for (const name of names) {
      const methods = owner as Record<string, (...args: unknown[]) => Promise<unknown>>;
      const original = methods[name] as (typeof methods)[string];
      vi.spyOn(methods, name).mockImplementation(async function (this: unknown, ...args) {
        if (steps.length === after) return die();
        const { file } = (args[0] ?? {}) as { file?: string };
        steps.push(file === undefined ? name : `${name} ${file}`);
        const result = await original.apply(this, args);
        return steps.length === STEPS.length && after === STEPS.length ? die() : result;
      });
    }
  };
  watch(Repository.prototype, ["removeStaleLocks", "snapshots", "manifests", "store", "check", "compare"]);
  watch(Repository.prototype, ["remember", "forget"]);
  watch(PieceSums.prototype, ["save"]);
  watch(TargetFile.prototype, ["update"]);
  await place.targets.start("disk");
  await (Number.isFinite(after) ? death.promise : place.ended());
  vi.restoreAllMocks();
  return steps;
}

async function dieAndContinue(after: number): Promise<void> {
  const place = await begin();
  await backUpUntilDeath(place, after);
  // The dead platform is left as it is, as a kernel would.
  await place.start();
  const { last } = await place.targets.get("disk");
  const wasStored = after === STEPS.length;
  expect(last).toMatchObject(wasStored ? { state: "complete" } : { state: "failed", error: { code: "aborted" } });
  const sets = await place.targets.sets("disk", patient());
  const complete = [after <= STEPS.indexOf("forget"), after > STEPS.indexOf("store manifest.json")];
  expect(sets.filter(({ state }) => state === "complete")).toHaveLength(complete.filter(Boolean).length);
  for (const { state, reason } of sets) if (state !== "complete") expect(reason).toMatch(/was not finished/);
  place.platform.apps.create("later");
  const next = await place.backUp();
  expect(next).toMatchObject({ state: "complete", error: null });
  expect((await place.targets.sets("disk", patient()))[0]).toMatchObject({ set: next.set, state: "complete" });
  const again = await Home.open({}, async (data) => {
    await run("cp", ["-a", `${await restore(past)}/.`, data]);
  });
  const names = again.platform.apps.list().map(({ name }) => name);
  await again.close();
  expect(names).toEqual(expect.arrayContaining(["shop", "later"]));
}

test("the rehearsal covers the backup", { tags: "again", timeout: 120_000 }, async () => {
  expect(await backUpUntilDeath(await begin(), Number.POSITIVE_INFINITY)).toEqual(STEPS);
});

const LAST_PIECE = STEPS.indexOf("store manifest.json");

test("killed when everything is stored, and nothing says so yet", { timeout: 120_000 }, () =>
  dieAndContinue(LAST_PIECE),
);

/** What only reads leaves what the step before it left. */
const READS = /^(?:snapshots|manifests|check|compare .*)$/;
const others = [...STEPS, "the end"]
  .map((next, after) => ({ next, after }))
  .filter(({ next, after }) => !READS.test(next) && after !== LAST_PIECE);

test.each(others)("killed after $after steps, before $next", { tags: "again", timeout: 120_000 }, ({ after }) =>
  dieAndContinue(after),
);
