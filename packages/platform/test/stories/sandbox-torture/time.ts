/** What a program does with the time that a sandbox has. */
import { setTimeout as delay } from "node:timers/promises";
import type { Kept } from "./kept.ts";
import { inform, LIFE_MS, ROUNDING_MS, type Step } from "./life.ts";
import type { World } from "./world.ts";

/** One whose time is over may have to start first, to be paused then. */
const EXPIRED_MS = 180_000;
const LOOK_MS = 250;

export const setTimeout: Step = async (world, kept) => {
  const timeoutMs = world.random.between(...LIFE_MS);
  const least = Date.now() + timeoutMs - ROUNDING_MS;
  kept.ends = undefined;
  const done = await world.attempt("timeout", () => kept.sandbox.setTimeout(timeoutMs), kept.id);
  if (done !== undefined) kept.ends = { least, most: Date.now() + timeoutMs + ROUNDING_MS };
};

/** Lets its time be over: it is paused or gone then, whatever is killed meanwhile. */
export const expire: Step = async (world, kept) => {
  kept.ends = undefined;
  kept.state = "unsure";
  kept.mayBeGone = !kept.wakes;
  if ((await world.attempt("expire", () => kept.sandbox.setTimeout(0), kept.id)) === undefined) return;
  const deadline = performance.now() + EXPIRED_MS;
  while (performance.now() < deadline) {
    const state = await inform(world, kept);
    if (state === "gone" && !kept.wakes) return;
    if (state === "paused" && kept.wakes) return prolong(world, kept);
    // It still runs.
    kept.state = "unsure";
    kept.mayBeGone = !kept.wakes;
    await delay(LOOK_MS);
  }
  world.wrong(`the time of ${kept.id} is over, and it runs`);
};

/** A request that wakes it would give it the time again that it had last. */
async function prolong(world: World, kept: Kept): Promise<void> {
  while (kept.ends === undefined && world.trouble.length === 0) await setTimeout(world, kept);
}
