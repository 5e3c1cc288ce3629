/** What a deploy does: the rule as a table, and the command against an API over the double. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Machine, MachineConfig } from "@hibernaut/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GROUP_METADATA } from "../../src/appfile/machine-configs.ts";
import { planDeploy } from "../../src/deploy/plan.ts";
import { startCli, type TestCli } from "../helpers.ts";

const NEW = "sha256:new";
const RELEASE = { image: { ref: "shop:1", digest: NEW }, pinned_image: `shop:1@${NEW}` };
const config = (more: Partial<MachineConfig> = {}): MachineConfig => ({
  image: "shop:1",
  env: { A: "1", B: "2" },
  metadata: { [GROUP_METADATA]: "app" },
  ...more,
});
const machine = (id: string, more: Partial<Machine> = {}): Machine =>
  ({
    id,
    state: "running",
    config: config(),
    image: { ref: "shop:1", digest: NEW },
    checks: [],
    state_reason: null,
    unreachable: null,
    health: { status: "healthy", reason: "it answers on its ports" },
    crash: null,
    ...more,
  }) as Machine;
const plan = (machines: Machine[], count?: number) =>
  planDeploy(
    new Map([["app", { config: config(), ...(count !== undefined && { count }) }]]),
    machines,
    RELEASE,
  ).steps.map((step) => (step.kind === "create" ? "create" : `${step.kind} ${step.machine.id}`));

describe("the plan", () => {
  const old = { image: { ref: "shop:1", digest: "sha256:old" } };
  test.each<[string, Machine[], number | undefined, string[]]>([
    ["an app without machines gets one", [], undefined, ["create"]],
    ["or as many as the file asks for", [], 3, ["create", "create", "create"]],
    ["what is current is kept", [machine("a")], undefined, ["keep a"]],
    [
      "the order of keys does not matter",
      [machine("a", { config: config({ env: { B: "2", A: "1" } }) })],
      undefined,
      ["keep a"],
    ],
    ["another digest of the same tag is another version", [machine("a", old)], undefined, ["update a"]],
    ["another configuration too", [machine("a", { config: config({ env: { A: "1" } }) })], undefined, ["update a"]],
    ["a failed one is tried again", [machine("a", { state: "failed" })], undefined, ["update a"]],
    [
      "running ones first, then new ones, then those that sleep",
      [machine("s", { ...old, state: "suspended" }), machine("r", old)],
      3,
      ["update r", "create", "update s"],
    ],
    ["more machines than asked for stay", [machine("a"), machine("b")], 1, ["keep a", "keep b"]],
  ])("%s", (_name, machines, count, steps) => {
    expect(plan(machines, count)).toEqual(steps);
  });

  test("machines of no group in the file are left alone", () => {
    const strange = machine("x", { config: { image: "other" } });
    const { steps, others } = planDeploy(new Map([["app", { config: config() }]]), [strange], RELEASE);
    expect([steps.map(({ kind }) => kind), others]).toEqual([["create"], [strange]]);
  });
});

describe("the command", () => {
  let cli: TestCli;
  let folder: string;
  beforeAll(async () => {
    cli = await startCli();
    folder = mkdtempSync(join(tmpdir(), "hibernaut-deploy-"));
    writeFileSync(
      join(folder, "fly.toml"),
      'app = "kiosk"\n[build]\nimage = "oci:/srv/kiosk"\n[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n',
    );
  }, 60_000);
  afterAll(async () => {
    await cli.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const hibernaut = (...args: string[]) => cli.hibernaut(args, { HIBERNAUT_APP: "" });
  const file = () => ["--config", join(folder, "fly.toml")];

  test("makes the app that the named file names, its machines and a release; again it changes nothing", async () => {
    expect(await hibernaut("deploy", ...file())).toMatchObject({
      code: 0,
      stdout: "Deployed release 1 of kiosk: 1 created.\nApp kiosk answers at http://kiosk.localhost:8080/\n",
    });
    const { document } = await cli.json(["deploy", ...file()], { HIBERNAUT_APP: "" });
    expect(document).toMatchObject({ release: 2, machines: [{ action: "kept" }] });
    expect(cli.server.platform.machines.list("kiosk").map(({ record }) => record.config)).toMatchObject([
      {
        image: expect.stringMatching(/^oci:\/srv\/kiosk@sha256:\w{64}$/),
        services: [{ internal_port: 8080, autostop: "suspend" }],
      },
    ]);
  });

  test("one that does not come up ends the deploy, marks the release and says what to do", async () => {
    cli.server.world.host.faults.boot = new Error("out of memory");
    const failed = await hibernaut("deploy", ...file(), "--image", "oci:/srv/broken", "--wait-timeout", "5");
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/has the new version, and it is failed: out of memory\. See `hibernaut logs/);
    expect(failed.stderr).toContain("go back: hibernaut deploy --app kiosk --image oci:/srv/kiosk");
    const { document } = await cli.json(["releases", "--app", "kiosk"]);
    expect(document.map((release: { status: string }) => release.status)).toEqual(["failed", "complete", "complete"]);
  });

  test("scale count and memory", async () => {
    await hibernaut("deploy", ...file());
    expect((await hibernaut("scale", "count", "3", "--app", "kiosk")).code).toBe(0);
    expect(cli.server.platform.machines.list("kiosk")).toHaveLength(3);
    expect((await hibernaut("scale", "memory", "512", "--app", "kiosk")).stdout).toBe(
      "3 machine(s) of kiosk now have 512 MB.\n",
    );
    expect((await hibernaut("scale", "count", "1", "--app", "kiosk")).code).toBe(2);
    expect((await hibernaut("scale", "count", "1", "--app", "kiosk", "--yes")).code).toBe(0);
    expect(await hibernaut("scale", "show", "--app", "kiosk")).toMatchObject({
      stdout: expect.stringMatching(/app +1 +1 +512 MB/),
    });
    expect(await hibernaut("scale", "count", "x", "--app", "kiosk")).toMatchObject({ code: 2 });
  });

  test("a deploy waits for a machine that an earlier deploy left in `starting`", async () => {
    const { platform, world, open } = cli.server;
    const state = () => platform.machines.list("kiosk")[0]?.record.state;
    const deploy = (...args: string[]) => hibernaut("deploy", ...file(), "--image", "oci:/srv/next", ...args);
    const release = world.holdBoots();
    // This strategy does not wait for the machine, which is therefore left to the next deploy.
    expect(await deploy("--strategy", "immediate")).toMatchObject({ code: 0 });
    await expect.poll(state, { timeout: 10_000 }).toBe("starting");

    let stateAtEnd: string | undefined;
    const next = deploy().finally(() => (stateAtEnd = state()));
    await expect.poll(() => open.waits, { timeout: 20_000 }).toBe(1);
    expect({ state: state(), stateAtEnd }).toEqual({ state: "starting", stateAtEnd: undefined });
    release();
    expect(await next).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Deployed release \d+ of kiosk: 1 kept/),
    });
    expect(stateAtEnd).toBe("running");
  });
});
