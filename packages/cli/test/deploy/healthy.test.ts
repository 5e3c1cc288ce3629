/** What counts as a machine that works, where that lasted for a moment only. */
import type { Machine, WaitState } from "@hibernaut/client";
import { expect, test } from "vitest";
import type { Context } from "../../src/context.ts";
import { untilHealthy } from "../../src/deploy/healthy.ts";

/** A machine with a service that has reached this, and is asleep since. */
function asleepSince(reached: WaitState): Context {
  const machine = {
    id: "m1",
    state: "suspended",
    crash: null,
    config: { services: [{ internal_port: 8080, idle_timeout: 1 }] },
    health: { status: "unknown", reason: "it is suspended" },
  } as unknown as Machine;
  const client = { getMachine: async () => machine, firstReached: async () => reached };
  return { app: "shop", client: async () => client } as unknown as Context;
}

test("a machine that worked, and was asleep again before the deploy looked, works", async () => {
  expect(await untilHealthy(asleepSince("healthy"), "m1", 60)).toEqual({
    ok: true,
    text: "it worked, and is suspended now",
  });
});

test("a machine that fell asleep without having worked does not", async () => {
  for (const reached of ["unhealthy", "suspended"] as const)
    expect(await untilHealthy(asleepSince(reached), "m1", 60)).toEqual({ ok: false, text: "it is suspended" });
});
