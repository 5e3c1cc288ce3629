/** How a deploy from the dashboard goes from machine to machine. */
import { ApiError, type Machine, type MachineConfig, type WaitState } from "@hibernaut/client";
import type { BrowserClient } from "@hibernaut/client/browser";
import { describe, expect, test } from "vitest";
import { rollOut, type Step } from "../src/pages/app/rollout.ts";
import { machine } from "./a-machine.ts";

const HEALTHY = { status: "healthy", reason: "its checks pass" } as const;
const UNHEALTHY = { status: "unhealthy", reason: "its check web fails: no database" } as const;

/** What a machine is after its update, and what it is as soon as the wait for that has ended. */
type After = Partial<Machine> & { soon?: Partial<Machine> };

/** The part of the platform that a rollout uses: machines that become what the test says when they are updated. */
class Machines {
  readonly updates: { id: string; config: MachineConfig; prewarm: unknown }[] = [];
  readonly waits: string[] = [];
  readonly #machines: Map<string, Machine>;
  readonly #after: Record<string, After>;
  readonly #refusals: ApiError[];

  constructor(machines: readonly Machine[], after: Record<string, After>, refusals: ApiError[]) {
    this.#machines = new Map(machines.map((one) => [one.machine_id, one]));
    this.#after = after;
    this.#refusals = refusals;
  }

  get api(): BrowserClient {
    const api: Pick<BrowserClient, "firstReached" | "getMachine" | "updateMachine" | "waitForMachine"> = {
      getMachine: (_app, id) => Promise.resolve(this.#get(id)),
      updateMachine: (_app, id, config = { image: "" }, options) => {
        const refusal = this.#refusals.shift();
        if (refusal !== undefined) return Promise.reject(refusal);
        this.updates.push({ id, config, prewarm: options?.prewarm });
        this.#machines.set(id, { ...this.#get(id), config, ...this.#after[id] });
        return Promise.resolve(this.#get(id));
      },
      firstReached: (_app, id) => {
        const { health, state } = this.#get(id);
        this.#machines.set(id, { ...this.#get(id), ...this.#after[id]?.soon });
        return Promise.resolve(health.status === "unknown" ? (state as WaitState) : health.status);
      },
      waitForMachine: (_app, id, options) => {
        this.waits.push(`${id}: ${[options?.state].flat().join(" ")}`);
        return Promise.resolve(this.#get(id).state);
      },
    };
    return api as BrowserClient;
  }

  #get(id: string): Machine {
    const found = this.#machines.get(id);
    if (found === undefined) throw new Error(`there is no machine ${id}`);
    return found;
  }
}

const withImage = (config: MachineConfig) => ({ ...config, image: "shop:v2" });
const web = (id: string, parts: Partial<Machine> = {}) => machine({ machine_id: id, name: id, ...parts });

interface RunOptions {
  kind?: "deploy" | "settings";
  prewarm?: boolean;
  /** Errors of the first updates. */
  refusals?: ApiError[];
}

async function run(
  machines: readonly Machine[],
  after: Record<string, After>,
  { kind = "deploy", prewarm = false, refusals = [] }: RunOptions = {},
) {
  const platform = new Machines(machines, after, refusals);
  const steps: Step[] = [];
  const options = { kind, change: withImage, prewarm, onStep: (step: Step) => void steps.push(step) };
  const error = await rollOut(platform.api, machines, options).then(
    () => undefined,
    (cause: unknown) => cause as Error,
  );
  return { platform, steps: steps.map(({ id, state, note }) => [id, state, note]), error };
}

describe("a rollout", () => {
  test("changes one machine after the other, and says how each works", async () => {
    const { platform, steps, error } = await run([web("a"), web("b", { state: "suspended" })], {
      a: { health: HEALTHY },
    });
    expect(error).toBeUndefined();
    expect(platform.updates.map(({ id, config }) => [id, config.image])).toEqual([
      ["a", "shop:v2"],
      ["b", "shop:v2"],
    ]);
    expect(steps).toEqual([
      ["a", "changing", "is being updated"],
      ["a", "done", "is running: its checks pass"],
      ["b", "changing", "is being updated"],
      ["b", "done", "is suspended, and starts with the change at the next request: nobody has tried it yet"],
    ]);
  });

  test("counts a machine that worked, and was asleep again before anyone looked", async () => {
    const soon = { state: "suspended", health: { status: "unknown", reason: "it is suspended" } } as const;
    const { steps, error } = await run([web("a")], { a: { health: HEALTHY, soon } });
    expect(error).toBeUndefined();
    expect(steps.at(-1)).toEqual(["a", "done", "worked, and is suspended now"]);
    expect((await run([web("a")], { a: { health: UNHEALTHY, soon } })).error?.message).toContain("It is suspended");
  });

  test("ends at the first machine that does not work, and leaves the others as they are", async () => {
    const { platform, steps, error } = await run([web("a"), web("b"), web("c")], { a: { health: UNHEALTHY } });
    expect(platform.updates.map(({ id }) => id)).toEqual(["a"]);
    expect(steps.at(-1)).toEqual(["a", "failed", "its check web fails: no database"]);
    expect(error?.message).toBe(
      "Machine a has the new version, and does not work: its check web fails: no database. The other 2 machines keep the old one. Look at its log, and roll back.",
    );
  });

  test("of settings does not advise to roll back, which would not change them", async () => {
    const { error } = await run([web("a"), web("b")], { a: { health: UNHEALTHY } }, { kind: "settings" });
    expect(error?.message).toBe(
      "Machine a has the new settings, and does not work: its check web fails: no database. The other machine keeps the old ones. Look at its log, and change them back under Settings.",
    );
  });

  test("tells of an app that crashes how it ended", async () => {
    const crash = { reason: "the app exited with code 1" } as NonNullable<Machine["crash"]>;
    const health = { status: "unknown", reason: "" } as const;
    const { error } = await run([web("a")], { a: { state: "restarting", crash, health } });
    expect(error?.message).toContain("does not work: the app exited with code 1. Look at its log");
  });

  test("starts machines that sleep only when it is told to, and fails with the reason of a prewarm", async () => {
    const prewarm = { status: "failed", until: "healthy", reason: "it crashed", since: "" } as const;
    const { platform, error } = await run([web("a", { state: "suspended" })], { a: { prewarm } }, { prewarm: true });
    expect(platform.updates.map((update) => update.prewarm)).toEqual([true]);
    expect(error?.message).toContain("does not work: it crashed");
  });

  test("waits for a machine that is being suspended, and passes other refusals on as the platform words them", async () => {
    const busy = new ApiError({ code: "aborted", message: "it is being suspended" });
    const { platform } = await run([web("a")], { a: { health: HEALTHY } }, { refusals: [busy] });
    expect(platform.waits[0]).toBe("a: settled");
    expect(platform.updates).toHaveLength(1);

    const full = new ApiError({ code: "failed_precondition", message: "the app has no room", requestId: "r1" });
    expect((await run([web("a")], {}, { refusals: [full] })).error).toBe(full);
  });
});
