/** What counts as a machine that works, where that lasted for a moment only. */
import type { Machine, WaitState } from "@hibernaut/client";
import { expect, test } from "vitest";
import type { Context } from "../../src/context.ts";
import { untilHealthy } from "../../src/deploy/healthy.ts";

/** A machine with a service that has reached this, and is asleep since, or what `now` says. */
function machineSince(reached: WaitState, now: Partial<Machine> = {}, reason = "it is suspended"): Context {
  const machine = {
    id: "m1",
    state: "suspended",
    crash: null,
    config: { services: [{ internal_port: 8080, idle_timeout: 1 }] },
    health: { status: "unknown", reason },
    ...now,
  } as unknown as Machine;
  const client = {
    getMachine: async () => machine,
    firstReached: async () => reached,
    readLogs: async function* () {},
  };
  return { app: "shop", client: async () => client } as unknown as Context;
}

test("a machine that worked, and was asleep again before the deploy looked, works", async () => {
  expect(await untilHealthy(machineSince("healthy"), "m1", 60)).toEqual({
    ok: true,
    text: "it worked, and is suspended now",
  });
});

test("an app that worked and has crashed since does not work", async () => {
  const crash = { at_start: false, reason: "the app exited with code 1" } as NonNullable<Machine["crash"]>;
  const reason = "it crashed: the app exited with code 1";
  const found = await untilHealthy(machineSince("healthy", { state: "restarting", crash }, reason), "m1", 60);
  expect(found).toMatchObject({ ok: false, text: reason });
});

test("a machine that fell asleep without having worked does not", async () => {
  for (const reached of ["unhealthy", "suspended"] as const)
    expect(await untilHealthy(machineSince(reached), "m1", 60)).toEqual({ ok: false, text: "it is suspended" });
});
