/** What a program does with a sandbox from outside. */
import { NotFoundError, Sandbox } from "e2b";
import { type Kept, look } from "./kept.ts";
import type { World } from "./world.ts";

/** How long a sandbox lives, in milliseconds: longer than the torture. */
export const LIFE_MS = [3 * 3_600_000, 20 * 3_600_000] as const;
/** Times are sent in whole seconds. */
export const ROUNDING_MS = 1_000;

export type Step = (world: World, kept: Kept) => Promise<unknown>;

export const pause: Step = async (world, kept) => {
  const was = kept.state;
  const began = performance.now();
  kept.state = "unsure";
  const done = await world.attempt("pause", () => kept.sandbox.pause(), kept.id);
  if (done === undefined) return;
  if (done.value && was === "paused") world.wrong(`${kept.id} was paused, and has been paused once more`);
  if (!done.value && was === "running" && !world.faults.disturbed(began, kept.id) && !world.faults.away(began))
    world.wrong(`${kept.id} was running, and "paused already"`);
  if (done.value) kept.flush();
  // Whether this call paused it or another one: it is paused.
  kept.state = "paused";
  await inform(world, kept);
};

export const connect: Step = async (world, kept) => {
  const slept = kept.state === "paused";
  const timeoutMs = world.random.between(...LIFE_MS);
  const least = Date.now() + timeoutMs - ROUNDING_MS;
  const before = kept.ends;
  kept.state = "unsure";
  kept.ends = undefined;
  const done = await world.attempt("connect", () => Sandbox.connect(kept.id, { ...world.options, timeoutMs }), kept.id);
  if (done === undefined) return;
  kept.sandbox = done.value;
  kept.state = "running";
  const ends = { least, most: Date.now() + timeoutMs + ROUNDING_MS };
  // Of one that runs, the time becomes longer only.
  if (slept) kept.ends = ends;
  else if (before !== undefined)
    kept.ends = { least: Math.max(before.least, least), most: Math.max(before.most, ends.most) };
  await look(world, kept);
};

/** Asks how it is, which is what was acknowledged. Resolves with the answer, if there was one. */
export async function inform(world: World, kept: Kept): Promise<"running" | "paused" | "gone" | undefined> {
  const began = performance.now();
  const ask = async () => {
    try {
      const { state, endAt } = await kept.sandbox.getInfo();
      return { state, endAt: endAt.getTime() };
    } catch (error) {
      if (error instanceof NotFoundError) return { state: "gone" as const, endAt: 0 };
      throw error;
    }
  };
  const done = await world.attempt("info", ask, kept.id);
  if (done === undefined) return undefined;
  const { state, endAt } = done.value;
  if (state === "gone") {
    if (!kept.mayBeGone) world.wrong(`${kept.id} is gone, and nobody killed it`);
    kept.state = "unsure";
    kept.mayBeGone = true;
    return state;
  }
  if (kept.state !== "unsure" && state !== kept.state) world.wrong(`${kept.id} is ${state}, and not ${kept.state}`);
  kept.state = state;
  // A kill that failed and did not begin leaves no trace; one that began has hidden it already.
  if (kept.mayBeGone && !world.faults.away(began)) kept.mayBeGone = false;
  const { ends } = kept;
  if (ends !== undefined && (endAt < ends.least || endAt > ends.most))
    world.wrong(`${kept.id} ends at ${endAt}, and not between ${ends.least} and ${ends.most}`);
  return state;
}

/** Resolves with its forks. */
export async function fork(world: World, kept: Kept): Promise<Kept[]> {
  const began = performance.now();
  const options = { count: world.random.pick([1, 1, 2]), timeoutMs: world.random.between(...LIFE_MS) };
  // Others may have been killed that it needs: its forks.
  const done = await world.attempt("fork", () => kept.sandbox.fork(options));
  if (done === undefined) return [];
  kept.flush();
  const children: Kept[] = [];
  for (const one of done.value) {
    if (!(one instanceof Sandbox)) {
      world.judge(`one fork of ${kept.id}`, one, { began });
      continue;
    }
    const child = kept.heir(one);
    if (world.faults.struck(began, child.id)) child.struck = true;
    children.push(child);
  }
  return children;
}

/** Kills it, and looks that it stays so. Resolves with whether it is gone. */
export async function kill(world: World, kept: Kept): Promise<boolean> {
  const was = kept.mayBeGone;
  kept.mayBeGone = true;
  const done = await world.attempt("kill", () => kept.sandbox.kill(), kept.id);
  if (done === undefined) return false;
  if (!done.value && !was) world.wrong(`${kept.id} was killed, and was gone already`);
  kept.state = "unsure";
  await inform(world, kept);
  if (kept.state !== "unsure") world.wrong(`${kept.id} was killed, and is ${String(kept.state)}`);
  return true;
}

/** One that is paused answers, and wakes, only if it was made so. */
export const knock: Step = async (world, kept) => {
  if (kept.wakes) {
    kept.state = "unsure";
    kept.ends = undefined;
    const done = await world.attempt("wake", () => kept.sandbox.files.exists("."), kept.id);
    if (done === undefined) return;
    kept.state = "running";
    await look(world, kept);
    return;
  }
  const done = await world.attempt("running?", () => kept.sandbox.isRunning(), kept.id);
  if (done?.value === true) world.wrong(`${kept.id} is paused, and says that it runs`);
};
