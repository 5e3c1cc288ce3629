/**
 * What a deploy does: the rule as a table, and the command against an API over the double.
 *
 * @module-tag again
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine, MachineConfig } from "@hibernaut/client";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { GROUP_METADATA } from "../../src/appfile/machine-configs.ts";
import { planDeploy } from "../../src/deploy/plan.ts";
import { useCli } from "../helpers.ts";

/** Nothing but the app file says which app is meant. */
const UNNAMED = { HIBERNAUT_APP: "" };
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
const planned = (machines: Machine[], count?: number, wanted = config()) =>
  planDeploy(new Map([["app", { config: wanted, ...(count !== undefined && { count }) }]]), machines, RELEASE);
const plan = (...given: Parameters<typeof planned>) =>
  planned(...given).steps.map((step) => (step.kind === "create" ? "create" : `${step.kind} ${step.machine.id}`));

test("as long as no release worked, a machine that is suspended must pass, and keeps its memory where it is current", () => {
  const asleep = machine("a", { state: "suspended" });
  const jobs = config({ schedule: "daily" });
  const wanted = (its: MachineConfig) => new Map([["app", { config: its }]]);
  const planOf = (one: Machine, its = config()) => planDeploy(wanted(its), [one], RELEASE, { untried: true }).steps;
  const older = { image: { ref: "shop:1", digest: "sha256:old" } };
  expect(planOf(asleep)).toMatchObject([{ kind: "keep", tries: true }]);
  expect(planOf({ ...asleep, ...older })).toMatchObject([{ kind: "update", running: true }]);
  // Its owner may have stopped it, and a machine on a schedule has its times.
  const stopped = machine("a", { state: "stopped" });
  expect(planOf(stopped)).toMatchObject([{ kind: "keep", tries: false }]);
  expect(planOf({ ...stopped, ...older })).toMatchObject([{ kind: "update", running: false }]);
  expect(planOf({ ...asleep, config: jobs }, jobs)).toMatchObject([{ kind: "keep", tries: false }]);
});

test("a machine that sleeps is started with a version that no request wakes any more, and else sleeps on", () => {
  const old = { image: { ref: "shop:1", digest: "sha256:old" }, state: "suspended" as const };
  const services = [{ internal_port: 8080 }];
  const update = (before: MachineConfig, after: MachineConfig) =>
    planned([machine("a", { ...old, config: before })], 1, after).steps;
  const [listens, silent] = [config({ services }), config()];
  expect(update(listens, silent)).toMatchObject([{ kind: "update", running: true }]);
  expect(update(listens, config({ services: [{ internal_port: 8080, autostart: false }] }))).toMatchObject([
    { running: true },
  ]);
  expect(update(listens, listens)).toMatchObject([{ kind: "update", running: false }]);
  // Its owner suspended it, and starts it.
  expect(update(silent, silent)).toMatchObject([{ kind: "update", running: false }]);
});

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
    [
      "rules for connections stay, if the file says nothing of them",
      [machine("a", { config: config({ network: { egress: { default: "deny" } } }) })],
      undefined,
      ["keep a"],
    ],
    [
      "so do metadata, which a file cannot name, except for those of deploys themselves",
      [
        machine("a", { config: config({ metadata: { [GROUP_METADATA]: "app", team: "search" } }) }),
        machine("b", { config: config({ metadata: { [GROUP_METADATA]: "app", hibernaut_canary: "app" } }) }),
      ],
      undefined,
      ["update b", "keep a"],
    ],
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

  test("a new version has the metadata that someone gave the machine", () => {
    const metadata = { [GROUP_METADATA]: "app", team: "search" };
    const { steps } = planned([machine("a", { ...old, config: config({ metadata }) })], 2);
    expect(steps.map((step) => step.kind !== "keep" && step.config.metadata)).toEqual([
      metadata,
      { [GROUP_METADATA]: "app" },
    ]);
  });

  test("a machine of a host that is away counts, and stays as it is", () => {
    const away = machine("a", { ...old, host: "c", host_state: "unreachable", version: "01J" });
    expect(plan([away])).toEqual([]);
    expect(plan([away, machine("b", old)], 3)).toEqual(["update b", "create"]);
    expect(planned([away])).toMatchObject({ away: [away], others: [], leftovers: [] });
    // Of the only one that its host has published nothing of yet, the group is not known.
    const unknown = machine("u", { config: { image: "unknown" }, host_state: "unreachable", version: "" });
    expect(plan([unknown])).toEqual([]);
    // One of another group does not count.
    const other = machine("o", { config: { image: "x" }, host_state: "unreachable", version: "01J" });
    expect(plan([other])).toEqual(["create"]);
  });

  test("a machine has the volume that the file asks for by its name", () => {
    const has = config({ mounts: [{ volume: "vol_0123456789abcdef", name: "data", path: "/data" }] });
    const asks = (path: string) => config({ mounts: [{ volume: "data", path }] });
    expect(plan([machine("a", { config: has })], 1, asks("/data"))).toEqual(["keep a"]);
    expect(plan([machine("a", { config: has })], 1, asks("/other"))).toEqual(["update a"]);
  });

  test("machines of no group in the file are left alone", () => {
    const strange = machine("x", { config: { image: "other" } });
    const { steps, others } = planned([strange]);
    expect([steps.map(({ kind }) => kind), others]).toEqual([["create"], [strange]]);
  });
});

describe("the command", () => {
  const cli = useCli();
  const hibernaut = (words: string) => cli.hibernaut(words, UNNAMED);
  beforeAll(() => {
    const service = '[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n';
    write("fly.toml", `app = "kiosk"\n[build]\nimage = "oci:/srv/kiosk"\n${service}`);
  });
  const pathOf = (name: string) => join(cli.server.world.folder, name);
  const write = (name: string, text: string) => writeFileSync(pathOf(name), text);
  /** Deploys this app file. */
  const deploy = (name: string, options = "") => hibernaut(`deploy --config ${pathOf(name)} ${options}`);

  test("makes the app that the named file names, its machines and a release; again it changes nothing", async () => {
    expect(await deploy("fly.toml")).toMatchObject({
      code: 0,
      stdout: "Deployed release 1 of kiosk: 1 created.\nApp kiosk answers at http://kiosk.localhost:8080/\n",
    });
    const { document } = await cli.json(`deploy --config ${pathOf("fly.toml")}`, UNNAMED);
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
    const failed = await deploy("fly.toml", "--image oci:/srv/broken --wait-timeout 5");
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/has the new version, and it is failed: out of memory\. See `hibernaut logs/);
    expect(failed.stderr).toContain("go back: hibernaut deploy --app kiosk --image oci:/srv/kiosk");
    const { document } = await cli.json("releases --app kiosk");
    expect(document.map((release: { status: string }) => release.status)).toEqual(["failed", "complete", "complete"]);
  });

  describe("with a release command", () => {
    const machines = () => cli.server.platform.machines.list("ledger").map(({ record }) => record);
    const releases = async () => (await cli.json("releases --app ledger")).document[0];
    /** Lets the command print something and exit. */
    const command = async (code: number) => {
      await expect.poll(() => machines().at(-1)?.releaseCommand && machines().at(-1)?.state, SLOW).toBe("running");
      const { id = "" } = machines().at(-1) ?? {};
      await cli.server.print(id, "migrating");
      const { env } = cli.server.world.host.guest(id) ?? {};
      cli.server.world.host.guest(id)?.exit(code);
      return env;
    };
    const SLOW = { timeout: 20_000 };
    beforeAll(() => {
      const migrate = '[deploy]\nrelease_command = "bin/migrate --all"\nrelease_command_timeout = "1m"\n';
      const rest = '[env]\nA = "1"\n[mounts]\nsource = "data"\ndestination = "/data"\n';
      write("release.toml", `app = "ledger"\n[build]\nimage = "oci:/srv/ledger"\n${migrate}${rest}`);
    });

    test("one that fails ends the release, and no machine is created", async () => {
      const deployed = deploy("release.toml");
      expect(await command(3)).toMatchObject({ A: "1", RELEASE_COMMAND: "1" });
      const { code, stderr } = await deployed;
      expect(code).toBe(1);
      expect(stderr).toMatch(/Running release command: bin\/migrate --all\n {2}migrating\n/);
      expect(stderr).toContain("The release command failed: it exited with code 3. No machine was changed.");
      await vi.waitFor(() => expect(machines()).toEqual([]));
      expect(await releases()).toMatchObject({ status: "failed", description: expect.stringContaining("code 3") });
    });

    test("one that succeeds is followed by the machines; and it can be skipped", async () => {
      const deployed = deploy("release.toml");
      await command(0);
      expect(await deployed).toMatchObject({ code: 0, stdout: expect.stringContaining("1 created") });
      expect(machines()).toMatchObject([{ config: { mounts: [{ path: "/data" }] } }]);
      expect(await releases()).toMatchObject({ status: "complete" });
      const skipped = await deploy("release.toml", "--skip-release-command");
      expect(skipped).toMatchObject({ code: 0, stdout: expect.stringContaining("1 kept") });
      expect(skipped.stderr).not.toContain("release command");
    });

    test("a client that goes away cancels it, and its machine is gone", async () => {
      const { version } = await cli.server.platform.releases.begin("ledger", "oci:/srv/ledger", "");
      const gone = new AbortController();
      const url = `${cli.server.url}/v1/apps/ledger/releases/${version}/command`;
      const headers = { authorization: `Bearer ${cli.server.token}`, "content-type": "application/json" };
      const body = JSON.stringify({ config: { image: "ignored", init: { cmd: ["x"] } } });
      const reply = await fetch(url, { method: "POST", headers, body, signal: gone.signal });
      expect(reply.status).toBe(200);
      await expect.poll(() => machines().at(-1)?.state, SLOW).toBe("running");
      gone.abort();
      await expect
        .poll(() => machines().filter(({ releaseCommand }) => releaseCommand !== undefined), SLOW)
        .toEqual([]);
    });
  });

  describe("with a strategy", () => {
    const machines = () => cli.server.platform.machines.list("fleet").map(({ record }) => record);
    const ids = () => machines().map(({ id }) => id);
    const deployImage = (image: string, options = "") => deploy("fleet.toml", `--image oci:/srv/${image} ${options}`);
    beforeAll(async () => {
      const service = "[http_service]\ninternal_port = 8080\nmin_machines_running = 2\n";
      write("fleet.toml", `app = "fleet"\n[deploy]\nstrategy = "bluegreen"\n${service}`);
      expect(await deployImage("one")).toMatchObject({ code: 0, stdout: expect.stringContaining("2 created") });
    });

    test("bluegreen: new machines come in place of all old ones, and then get the requests", async () => {
      const before = ids();
      const { code, stdout, stderr } = await deployImage("two");
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("2 replaced") });
      expect(stderr).toMatch(/Creating a machine to replace \w+[^]*Machine \w+ gets requests from now on\.\nMachine/);
      expect(ids().filter((id) => before.includes(id))).toEqual([]);
      expect(machines()).toMatchObject([
        { state: "running", cordoned: false, config: { image: expect.stringContaining("/srv/two@") } },
        { state: "running", cordoned: false },
      ]);
      expect(await deployImage("two")).toMatchObject({ code: 0, stdout: expect.stringContaining("2 kept") });
    });

    test("bluegreen and canary: where the new version does not come up, nothing has changed", async () => {
      const before = machines();
      for (const strategy of ["bluegreen", "canary"]) {
        cli.server.world.host.faults.boot = new Error("no room");
        const { code, stderr } = await deployImage("broken", `--strategy ${strategy}`);
        expect(code).toBe(1);
        expect(stderr).toMatch(
          /has the new version, and it is failed: no room\.[^]*No machine was changed, and the new/,
        );
        expect(machines()).toEqual(before);
      }
    });

    test("canary: one new machine passes and goes, then the others are updated", async () => {
      const before = ids();
      const { code, stdout, stderr } = await deployImage("three", "--strategy canary");
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("2 updated") });
      expect(stderr).toMatch(
        /Creating a canary of process group app\nMachine (\w+) works[^]*Replacing machine \w+\nMach/,
      );
      expect(ids()).toEqual(before);
    });

    test("what an interrupted deploy has left is destroyed by the next one, but not while that deploy may be running", async () => {
      const [kept] = machines();
      const { record: left } = await cli.server.platform.machines.create("fleet", {
        cordoned: true,
        config: { ...(kept as NonNullable<typeof kept>).config, metadata: { hibernaut_canary: "app" } },
      });
      const other = await cli.server.platform.releases.begin("fleet", "oci:/srv/three", "");
      expect((await deployImage("three")).stderr).toContain(
        `Machine ${left.id} belongs to another deploy, which has not ended`,
      );
      cli.server.platform.releases.end("fleet", other.version, "failed", "");
      const { stdout, stderr } = await deployImage("three");
      expect(stderr).toContain(`Destroying machine ${left.id}, which an interrupted deploy has left`);
      expect(stdout).toContain("1 destroyed, 2 kept");
      expect(ids()).not.toContain(left.id);
    });

    test("Ctrl-C ends the release, and the next deploy clears up at once", async () => {
      const before = ids();
      const release = cli.server.world.holdBoots();
      const words = `deploy --config ${pathOf("fleet.toml")} --image oci:/srv/four --strategy canary`;
      const { child, ended } = cli.begin(words, UNNAMED);
      await expect.poll(() => ids().length, { timeout: 20_000 }).toBe(before.length + 1);
      child.kill("SIGINT");
      expect((await ended).code).toBe(130);
      release();
      const [last] = (await cli.json("releases --app fleet")).document;
      expect(last).toMatchObject({ status: "failed", description: "The deploy was interrupted." });
      expect((await deployImage("three", "--strategy rolling")).stdout).toContain("1 destroyed, 2 kept");
      expect(ids()).toEqual(before);
    });

    test("volumes rule it out before anything runs", async () => {
      const volumes = '[mounts]\nsource = "data"\ndestination = "/data"\n[deploy]\nrelease_command = "never"\n';
      write("volumes.toml", `app = "fleet"\n${volumes}`);
      const before = ids();
      const refused = await deploy("volumes.toml", "--image oci:/srv/three --strategy canary");
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("The strategy canary needs a second") });
      expect(refused.stderr).not.toContain("release command");
      expect(ids()).toEqual(before);
    });

    test("cordon and uncordon", async () => {
      const [id = ""] = ids();
      expect((await hibernaut(`machine cordon ${id} --app fleet`)).stdout).toBe(`Machine ${id} is cordoned.\n`);
      expect((await hibernaut(`machine status ${id} --app fleet`)).stdout).toMatch(/^cordoned +yes: the proxy/m);
      expect((await hibernaut(`machine uncordon ${id} --app fleet`)).code).toBe(0);
      expect(machines()[0]?.cordoned).toBe(false);
    });
  });

  test("local files of the app file come into its machines, and a changed one changes them", async () => {
    const text = 'app = "files"\n[build]\nimage = "oci:/srv/files"\n[[files]]\nguest_path = "/etc/motd"\n';
    write("files.toml", `${text}local_path = "motd.txt"\n`);
    expect(await deploy("files.toml")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /files\[0\]\.local_path: .*motd\.txt cannot be read \(ENOENT\)\. Paths are relative/,
      ),
    });
    const files = () => {
      const [only] = cli.server.platform.machines.list("files");
      return cli.server.world.host.guest(only?.record.id ?? "")?.files;
    };
    write("motd.txt", "hello");
    const deployed = async () => (await cli.json(`deploy --config ${pathOf("files.toml")}`, UNNAMED)).document.machines;
    expect(await deployed()).toMatchObject([{ action: "created" }]);
    expect(files()).toEqual({ "/etc/motd": { mode: "644", text: "hello" } });
    expect(await deployed()).toMatchObject([{ action: "kept" }]);
    write("motd.txt", "good evening");
    expect(await deployed()).toMatchObject([{ action: "updated" }]);
    expect(files()).toMatchObject({ "/etc/motd": { text: "good evening" } });
    const { stdout } = await hibernaut("machine status --app files");
    expect(stdout).toMatch(/^file +\/etc\/motd, 12 bytes$/m);
    await hibernaut("apps destroy files --force --yes");
  });

  test("scale count and memory", async () => {
    await deploy("fly.toml");
    expect((await hibernaut("scale count 3 --app kiosk")).code).toBe(0);
    expect(cli.server.platform.machines.list("kiosk")).toHaveLength(3);
    expect((await hibernaut("scale memory 512 --app kiosk")).stdout).toBe("3 machine(s) of kiosk now have 512 MB.\n");
    expect((await hibernaut("scale count 1 --app kiosk --yes")).code).toBe(0);
    expect(await hibernaut("scale show --app kiosk")).toMatchObject({
      stdout: expect.stringMatching(/app +1 +1 +512 MB/),
    });
    expect(await hibernaut("scale count x --app kiosk")).toMatchObject({ code: 2 });
  });

  test("a deploy waits for a machine that an earlier deploy left in `starting`", async () => {
    const { platform, world, open } = cli.server;
    const state = () => platform.machines.list("kiosk")[0]?.record.state;
    const deployNext = (options = "") => deploy("fly.toml", `--image oci:/srv/next ${options}`);
    const release = world.holdBoots();
    // This strategy does not wait for the machine, which is therefore left to the next deploy.
    expect(await deployNext("--strategy immediate")).toMatchObject({ code: 0 });
    await expect.poll(state, { timeout: 10_000 }).toBe("starting");

    let stateAtEnd: string | undefined;
    const next = deployNext().finally(() => (stateAtEnd = state()));
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
