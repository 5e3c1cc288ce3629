/** A life on a platform that is killed at one of its steps. */
import type { Mortality } from "../../platform/test/helpers/mortal.ts";

/** Lives until the end, or until the platform is killed, after which any call may fail. */
export async function untilDeath(mortality: Mortality, life: Promise<unknown>): Promise<void> {
  const end = life.catch((error: unknown) => {
    if (!mortality.dead) throw error;
  });
  await Promise.race([end, mortality.death.promise]);
  if (mortality.dead) await mortality.ended();
}

/** The steps of a life that was lived to its end. */
export function stepsOf({ steps }: Mortality): { name: string; step: number }[] {
  return steps.map((name, step) => ({ name, step }));
}

/** The first step of each name, and the others. */
export function firstOfEach<T extends { name: string }>(steps: readonly T[]): { first: T[]; others: T[] } {
  const isFirst = (step: T) => steps.find(({ name }) => name === step.name) === step;
  return { first: steps.filter(isFirst), others: steps.filter((step) => !isFirst(step)) };
}
