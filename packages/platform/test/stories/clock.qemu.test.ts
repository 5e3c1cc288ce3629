/**
 * What a sleep does to time, as programs in the machine see it. `randomness.qemu.test.ts` is about what they draw.
 *
 * @module-tag again
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { patiently } from "../helpers/http.ts";
import { longOr } from "../helpers/long.ts";
import { ask } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

/** The promise is 500 ms; this is what is aimed at. What a request took is added: nobody knows when it was answered. */
const MOST_OFF_MS = 50;
/** Larger than any pause of a busy host between two readings of a clock, smaller than every sleep here. */
const JUMP_MS = 900;
/** How often the app that looks at the clock all the time is put to sleep. */
const WATCHED_SLEEPS = longOr(3, 2);
const MEASUREMENTS = 5;
/** Seconds: four machines, twenty sleeps. */
const SLEEPS = longOr([[60], [25, 15, 5], [8, 7, 6, 5, 4, 3], [3, 3, 3, 2, 2, 2, 1, 1, 1, 1]], [[3], [2, 1]]);

const place = Place.forTests();
const image = await shellImage();

/**
 * Tells both clocks. With WATCH it reads the clocks all the time and keeps every step of the
 * wall clock that the other clock does not explain.
 */
const APP = `
  const jumps = [];
  let last = { wall: Date.now(), mono: performance.now() };
  const watch = () => {
    const now = { wall: Date.now(), mono: performance.now() };
    const by = now.wall - last.wall - (now.mono - last.mono);
    if (Math.abs(by) > ${JUMP_MS}) jumps.push({ by, from: last.wall, to: now.wall, mono: now.mono - last.mono });
    last = now;
    setImmediate(watch);
  };
  if (process.env.WATCH) watch();
  require("http").createServer((request, response) => response.end(JSON.stringify({
    wall: Date.now(), mono: performance.now(), jumps,
  }))).listen(8080);
`;

interface Look {
  wall: number;
  mono: number;
  jumps: { by: number; from: number; to: number; mono: number }[];
  /** When it was taken by the host's clock, and how far that may be off. */
  host: number;
  unsure: number;
}

async function machine(env: Record<string, string> = {}) {
  const made = await place.machine({ image, init: { exec: ["node", "-e", APP] }, env });
  return { id: made.machine_id, address: made.private_address };
}

function look(address: string): Promise<Look> {
  return patiently(async () => {
    const begin = performance.timeOrigin + performance.now();
    const answer = (await ask(address)) as unknown as Look;
    const end = performance.timeOrigin + performance.now();
    return { ...answer, host: (begin + end) / 2, unsure: (end - begin) / 2 + 1 };
  });
}

/**
 * How far the wall clock was off at `first`. That request took long, on a guest that just woke; of some that follow the
 * shortest says how far the wall clock is from the host's, and the monotonic clock what was done to it in between.
 */
async function errorOf(first: Look, address: string): Promise<{ off: number; unsure: number }> {
  let best = first;
  for (let count = 0; count < MEASUREMENTS; count += 1) {
    const next = await look(address);
    if (next.unsure < best.unsure) best = next;
  }
  const setBetween = best.wall - best.mono - (first.wall - first.mono);
  return { off: best.wall - best.host - setBetween, unsure: best.unsure };
}

test("after every sleep the wall clock is right at the first request, and the other clock did not advance", async () => {
  const seen: string[] = [];
  const faults: string[] = [];
  const sleeper = async (sleeps: number[]) => {
    const { id, address } = await machine();
    for (const seconds of sleeps) {
      const before = await look(address);
      await place.suspend(id);
      await sleep(seconds * 1000); // the sleep is what is tested
      await place.start(id);
      const after = await look(address);
      const { off, unsure } = await errorOf(after, address);
      const what = `${seconds} s: off by ${off.toFixed(1)} ms, +-${unsure.toFixed(1)} ms`;
      seen.push(what);
      if (Math.abs(off) > MOST_OFF_MS + unsure) faults.push(what);
      const stood = after.host - before.host - (after.mono - before.mono);
      if (stood < seconds * 1000 - MOST_OFF_MS - before.unsure - after.unsure)
        faults.push(`${seconds} s: the monotonic clock was stopped for ${stood} ms`);
    }
    await place.client.destroyMachine(place.app, id, { force: true });
  };
  await Promise.all(SLEEPS.map(sleeper));
  console.info(seen.join("\n"));
  expect(seen).toHaveLength(SLEEPS.flat().length);
  expect(faults).toEqual([]);
}, 300_000);

test("an app that looks at the clock all the time sees one jump per sleep, and never the old time after it", {
  tags: "again",
}, async () => {
  const { id, address } = await machine({ WATCH: "1" });
  await look(address);
  for (let cycle = 1; cycle <= WATCHED_SLEEPS; cycle += 1) {
    await place.suspend(id);
    const suspended = Date.now();
    await sleep(2000); // as above
    const resumed = Date.now();
    await place.start(id);
    const { jumps, host, unsure } = await look(address);
    expect(jumps).toHaveLength(cycle);
    const jump = jumps.at(-1);
    if (jump === undefined) throw new Error("no jump");
    expect(jump.by).toBeGreaterThan(2000 - MOST_OFF_MS);
    expect(jump.from).toBeLessThan(suspended + MOST_OFF_MS);
    expect(jump.to).toBeGreaterThan(resumed - MOST_OFF_MS);
    expect(jump.to).toBeLessThan(host + unsure + MOST_OFF_MS);
  }
  await place.client.destroyMachine(place.app, id, { force: true });
});
