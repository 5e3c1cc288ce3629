/**
 * Programs that use E2B's SDK in a loop, while the platform and virtual machines are killed at any moment: nothing that was
 * acknowledged is lost, a call that failed has happened or not, and every error is one that the SDK knows.
 * `HIBERNAUT_TORTURE_S` sets for how long, and `HIBERNAUT_TORTURE_SEED` repeats the choices of an earlier run.
 */
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { e2bOptions, sandboxTemplate } from "../helpers/e2b.ts";
import { PATIENT } from "../helpers/patient.ts";
import { Place, WARM } from "../helpers/served.ts";
import { Random } from "../power/random.ts";
import { Faults } from "./sandbox-torture/faults.ts";
import { Program } from "./sandbox-torture/program.ts";
import { World } from "./sandbox-torture/world.ts";

const SECONDS = Number(process.env["HIBERNAUT_TORTURE_S"] ?? 300);
const SEED = Number(process.env["HIBERNAUT_TORTURE_SEED"] ?? randomInt(2 ** 31));
const PROGRAMS = 2;
/** The image is packed, templates are made, and at the end everything is thrown away. */
const MORE_MS = 900_000;
/** The pool is filled, or gone, by then. */
const POOL_MS = 240_000;

const place = Place.forTests({
  ...PATIENT,
  // Half of the runs wake machines from memory, the others from their snapshots.
  ...(SEED % 2 === 0 ? WARM : {}),
  // The programs keep their connection to the platform, which comes back where it was.
  HIBERNAUT_SANDBOX_LISTEN: `127.0.0.1:${await freePort()}`,
  HIBERNAUT_LOG_LEVEL: process.env["HIBERNAUT_LOG_LEVEL"] ?? "silent",
});
const say = (line: string) => void process.stderr.write(`sandbox torture: ${line}\n`);

test(`nothing acknowledged is lost, and no error is strange, in ${SECONDS} s of kills (seed ${SEED})`, {
  timeout: SECONDS * 1000 + MORE_MS,
}, async () => {
  const options = await e2bOptions(place);
  await sandboxTemplate(place);
  await sandboxTemplate(place, place.app, "pooled", 1);
  const pool = async () => (await place.client.getTemplate(place.app, "pooled")).pool?.ready;
  await expect.poll(pool, { timeout: POOL_MS, interval: 100 }).toBe(1);

  const programs: Program[] = [];
  const seen = new Set<string>();
  const faults = new Faults(place, new Random(SEED), (id) => {
    for (const program of programs) program.strike(id);
  });
  const worlds = Array.from({ length: PROGRAMS }, (_, at) => {
    const random = new Random(SEED + 1 + at);
    const world = new World({ name: `program-${at}`, seen, options, faults, random });
    programs.push(new Program(world));
    return world;
  });
  const end = performance.now() + SECONDS * 1000;
  const trouble = () => worlds.flatMap((world) => world.trouble);
  const going = () => performance.now() < end && trouble().length === 0;
  await Promise.all([
    faults.go(going, (line) => {
      for (const world of worlds) world.say(line);
    }),
    ...programs.map((program) => program.go(going)),
  ]);
  for (const program of programs) await program.end();
  say(
    JSON.stringify({
      seed: SEED,
      killed: faults.done,
      worlds: worlds.map(({ answered, failed }) => ({ answered, failed })),
    }),
  );
  for (const world of worlds) if (world.trouble.length > 0) say(`before it, with seed ${SEED}:\n${world.past}`);
  expect(trouble()).toEqual([]);

  // Templates are kept, and nothing else.
  for (const { name } of await place.client.listTemplates(place.app))
    await place.client.deleteTemplate(place.app, name);
  await expect.poll(() => place.leftovers(), { timeout: POOL_MS, interval: 100 }).toEqual([]);
  expect(await place.processes()).toEqual([]);
});
