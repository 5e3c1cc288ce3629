/** What a program does with the time that a sandbox has. */
import { setTimeout as delay } from "node:timers/promises";
import { inform, LIFE_MS, ROUNDING_MS, type Step } from "./life.ts";

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
    if ((await inform(world, kept)) === (kept.wakes ? "paused" : "gone")) return;
    // It still runs.
    kept.state = "unsure";
    kept.mayBeGone = !kept.wakes;
    await delay(LOOK_MS);
  }
  world.wrong(`the time of ${kept.id} is over, and it runs`);
};
