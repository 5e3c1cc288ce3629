/** The strategies: each as a list of stages, and what holds for all of them, wherever they fail. */
import type { Machine, MachineConfig } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GROUP_METADATA } from "../../src/appfile/machine-configs.ts";
import { CANARY_METADATA, leftovers, REPLACES_METADATA } from "../../src/deploy/leftovers.ts";
import { groupOf, isUp, planDeploy } from "../../src/deploy/plan.ts";
import { placeBeside } from "../../src/deploy/replacing.ts";
import { STRATEGIES, type Strategy } from "../../src/deploy/strategies.ts";
import { type Action, planStages, type Stage, strategyRefusal } from "../../src/deploy/strategy.ts";

const OLD = "sha256:old";
const NEW = "sha256:new";
const RELEASE = { image: { ref: "shop:2", digest: NEW }, pinned_image: `shop:2@${NEW}` };
const config = (group: string, more: Partial<MachineConfig> = {}): MachineConfig => ({
  image: "shop:1",
  metadata: { [GROUP_METADATA]: group },
  ...more,
});
const machine = (id: string, group: string, more: Partial<Machine> = {}): Machine =>
  ({
    ...{ id, state: "running", crash: null, cordoned: false },
    config: config(group),
    image: { ref: "shop:1", digest: OLD },
    ...more,
  }) as Machine;
const wanted = (groups: readonly string[], more: Partial<MachineConfig> = {}) =>
  new Map(groups.map((group) => [group, { config: config(group, more) }]));

const shown = (action: Action): string => {
  if (action.do === "boot" || action.do === "promote" || action.do === "discard") return `${action.do} ${action.key}`;
  if (action.do === "retire") return `retire ${action.machine.id}`;
  const { step, wait } = action;
  return `${step.kind} ${step.kind === "create" ? step.group : step.machine.id}${wait ? "" : " at once"}`;
};
const stagesOf = (stages: readonly Stage[]) =>
  stages.map(({ actions, undo }) => `${actions.map(shown).join(", ")}${undo ? " | or nothing" : ""}`);

describe("the stages", () => {
  const machines = [
    machine("w1", "web"),
    machine("w2", "web"),
    machine("w3", "web"),
    machine("s1", "web", { state: "suspended" }),
    machine("j1", "jobs"),
  ];
  const one = ["update w1", "update w2", "update w3", "update j1", "create cron", "update s1"];
  test.each<[Strategy, number | undefined, string[]]>([
    ["rolling", undefined, one],
    ["rolling", 2, ["update w1, update w2", "update w3", "update j1", "create cron", "update s1"]],
    ["rolling", 0.33, one],
    ["rolling", 0.5, ["update w1, update w2", "update w3", "update j1", "create cron", "update s1"]],
    ["rolling", 9, ["update w1, update w2, update w3", "update j1", "create cron", "update s1"]],
    ["immediate", undefined, [one.map((step) => `${step} at once`).join(", ")]],
    ["canary", undefined, ["boot web, boot jobs | or nothing", "discard web, discard jobs | or nothing", ...one]],
    [
      "bluegreen",
      undefined,
      [
        "boot w1, boot w2, boot w3, boot j1 | or nothing",
        "promote w1, promote w2, promote w3, promote j1",
        "retire w1, retire w2, retire w3, retire j1",
        "create cron",
        "update s1",
      ],
    ],
  ])("%s, max_unavailable %s", (strategy, maxUnavailable, expected) => {
    const { steps } = planDeploy(wanted(["web", "jobs", "cron"]), machines, RELEASE);
    expect(stagesOf(planStages(steps, { strategy, maxUnavailable }))).toEqual(expected);
  });

  test("where nothing changes, no strategy creates a machine", () => {
    const current = [machine("a", "web", { image: { ref: "shop:2", digest: NEW } })];
    const { steps } = planDeploy(wanted(["web"]), current, RELEASE);
    for (const strategy of STRATEGIES)
      expect(planStages(steps, { strategy }).flatMap(({ actions }) => actions.map(shown))).toEqual([
        strategy === "immediate" ? "keep a at once" : "keep a",
      ]);
  });

  test("a canary is in no process group, and a green machine says whose place it takes", () => {
    const { steps } = planDeploy(wanted(["web"]), [machine("a", "web")], RELEASE);
    const [canary] = planStages(steps, { strategy: "canary" })[0]?.actions ?? [];
    expect(canary).toMatchObject({ config: { image: RELEASE.pinned_image, metadata: { [CANARY_METADATA]: "web" } } });
    const [green] = planStages(steps, { strategy: "bluegreen" })[0]?.actions ?? [];
    const metadata = { [GROUP_METADATA]: "web", [REPLACES_METADATA]: "a" };
    expect(green).toMatchObject({ config: { metadata } });
    const promoted = machine("b", "web", { config: config("web", { metadata }), image: { ref: "", digest: NEW } });
    expect(planDeploy(wanted(["web"]), [promoted], RELEASE).steps, "current").toMatchObject([{ kind: "keep" }]);
  });

  test("a host that is named is for more machines: a canary and a green machine stay where the other one is", () => {
    const { steps } = planDeploy(wanted(["web"]), [machine("a", "web", { host: "a" })], RELEASE);
    for (const strategy of ["canary", "bluegreen"] as const) {
      const [boot] = planStages(steps, { strategy })[0]?.actions ?? [];
      if (boot?.do !== "boot") throw new Error("nothing is booted");
      expect(placeBeside(boot.model, { host: "b", region: "eu" })).toEqual({ host: "a", region: "eu" });
      // Without a name, the cluster chooses.
      expect(placeBeside(boot.model)).toEqual({});
    }
  });

  test("volumes rule out canary and bluegreen, and the reason says what to do", () => {
    const mounts = [{ volume: "data", path: "/data" }];
    for (const [strategy, refused] of [
      ["rolling", false],
      ["immediate", false],
      ["canary", true],
      ["bluegreen", true],
    ] as const) {
      const asked = planDeploy(wanted(["web"], { mounts }), [], RELEASE).steps;
      const present = planDeploy(
        wanted(["web"]),
        [machine("a", "web", { config: config("web", { mounts }) })],
        RELEASE,
      );
      for (const steps of [asked, present.steps])
        expect(strategyRefusal(strategy, steps)).toEqual(
          refused ? expect.stringMatching(/^The strategy .* web have volumes.* Use --strategy rolling/) : undefined,
        );
      expect(
        strategyRefusal(strategy, planDeploy(wanted(["web"]), [machine("a", "web")], RELEASE).steps),
      ).toBeUndefined();
    }
  });

  test("a machine that its owner cordoned is not a leftover", () => {
    const came = { [REPLACES_METADATA]: "gone", [GROUP_METADATA]: "web" };
    const promoted = machine("b", "web", { cordoned: true, config: config("web", { metadata: came }) });
    expect(leftovers([machine("a", "web", { cordoned: true }), promoted])).toEqual([]);
  });
});

/** Machines as the platform would have them. Actions change them. */
class Fleet {
  machines: Machine[];
  #booted = new Map<string, string>();
  #next = 0;

  constructor(machines: readonly Machine[]) {
    this.machines = [...machines];
  }

  do(action: Action): void {
    switch (action.do) {
      case "boot":
        return this.#boot(action);
      case "promote":
        return this.#change(this.#booted.get(action.key) ?? "", { cordoned: false });
      case "discard":
        return this.#remove(this.#booted.get(action.key) ?? "");
      case "retire":
        return this.#remove(action.machine.id);
      case "step":
        if (action.step.kind === "create") this.#add(action.step.config, {});
        if (action.step.kind === "update")
          this.#change(action.step.machine.id, { config: action.step.config, image: RELEASE.image });
    }
  }

  undo(): void {
    for (const id of this.#booted.values()) this.#remove(id);
  }

  /** Machines of a group that get requests. */
  serving(group: string): number {
    return this.machines.filter((one) => groupOf(one) === group && isUp(one) && !one.cordoned).length;
  }

  #boot({ key, config: wantedConfig }: Extract<Action, { do: "boot" }>): void {
    this.#booted.set(key, this.#add(wantedConfig, { cordoned: true }));
  }

  #add(wantedConfig: MachineConfig, more: Partial<Machine>): string {
    const id = `new${Math.random()}-${(this.#next += 1)}`;
    this.machines.push(machine(id, "", { config: wantedConfig, image: RELEASE.image, ...more }));
    return id;
  }

  #change(id: string, changes: Partial<Machine>): void {
    this.machines = this.machines.map((one) => (one.id === id ? { ...one, ...changes } : one));
  }

  #remove(id: string): void {
    this.machines = this.machines.filter((one) => one.id !== id);
  }
}

const GROUPS = ["web", "jobs"];
const fleet = fc.array(
  fc.record({
    group: fc.constantFrom(...GROUPS),
    state: fc.constantFrom("running", "suspended", "stopped", "failed"),
    current: fc.boolean(),
  }),
  { maxLength: 7 },
);
/** Where a deploy ends early: which action fails, or at which the client is killed. */
const accident = fc.option(
  fc.record({ at: fc.nat(30), kind: fc.constantFrom("fails", "killed before", "killed after") }),
);

/** Deploys until the accident. Returns the stage in which it happened. */
function deploy(on: Fleet, stages: readonly Stage[], end: { at: number; kind: string } | null): Stage | undefined {
  let count = 0;
  for (const stage of stages) {
    let failed = false;
    for (const action of stage.actions) {
      const now = count++ === end?.at;
      if (now && end?.kind === "killed before") return stage;
      // A machine that does not pass is there nevertheless.
      on.do(action);
      if (now && end?.kind === "killed after") return stage;
      failed ||= now;
    }
    if (failed && stage.undo) on.undo();
    if (failed) return stage;
  }
  return undefined;
}

const planned = (on: Fleet, strategy: Strategy, maxUnavailable?: number) => {
  const plan = planDeploy(wanted(GROUPS), on.machines, RELEASE);
  const cleared = plan.leftovers.map((one): Action => ({ do: "retire", machine: one, why: "leftover" }));
  return [{ actions: cleared, undo: false }, ...planStages(plan.steps, { strategy, maxUnavailable })];
};

test("whatever the strategy and wherever it ends: what holds during a deploy, and the next one completes it", () => {
  fc.assert(
    fc.property(
      fleet,
      fc.constantFrom(...STRATEGIES),
      fc.constantFrom(...STRATEGIES),
      fc.constantFrom(1, 2, 0.33, 0.5),
      accident,
      (members, strategy, nextStrategy, maxUnavailable, end) => {
        const start = members.map(({ group, state, current }, index) =>
          machine(`m${index}`, group, { state, ...(current && { image: RELEASE.image }) }),
        );
        const on = new Fleet(start);
        const before = new Map(GROUPS.map((group) => [group, on.serving(group)]));
        const sizes = new Map(GROUPS.map((group) => [group, start.filter((one) => groupOf(one) === group).length]));
        const stages = planned(on, strategy, maxUnavailable);

        for (const { actions } of strategy === "rolling" || strategy === "canary" ? stages : []) {
          const down = actions.filter((one) => one.do === "step" && one.step.kind === "update" && one.step.running);
          const group = down[0]?.do === "step" ? down[0].step.group : "";
          const most = maxUnavailable >= 1 ? maxUnavailable : Math.ceil((sizes.get(group) ?? 0) * maxUnavailable);
          expect(down.length).toBeLessThanOrEqual(Math.max(1, most));
        }
        const stopped = deploy(on, stages, end);
        if (end?.kind === "fails" && stopped?.undo) expect(on.machines, "nothing changed").toEqual(start);
        if (strategy === "bluegreen")
          for (const group of GROUPS) expect(on.serving(group)).toBeGreaterThanOrEqual(before.get(group) ?? 0);

        deploy(on, planned(on, nextStrategy), null);
        for (const group of GROUPS) {
          const own = on.machines.filter((one) => groupOf(one) === group);
          expect(own).toHaveLength(Math.max(1, sizes.get(group) ?? 0));
        }
        expect(on.machines.filter(({ cordoned }) => cordoned)).toEqual([]);
        expect(on.machines.map(({ image }) => image.digest)).toEqual(on.machines.map(() => NEW));
        expect(
          on.machines.every((one) => GROUPS.includes(groupOf(one) ?? "")),
          "no canary is left",
        ).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});
