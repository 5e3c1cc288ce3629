/** From an app's directory to running machines: the CLI, a real registry, real machines, the real proxy. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { TestRegistry } from "../helpers/registry.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

let place: Place;
let registry: TestRegistry;
beforeAll(async () => {
  [place, registry] = await Promise.all([
    Place.open({ ...WARM, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" }),
    TestRegistry.start(),
  ]);
});
afterAll(async () => {
  await registry.stop();
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** Of a visitor, between two requests: those who never pause take the CPU time that the deploy needs. */
const PAUSE_MS = 10;

async function environment(): Promise<NodeJS.ProcessEnv> {
  const connection = { HIBERNAUT_API_URL: place.client.apiUrl, HIBERNAUT_API_TOKEN: await place.token() };
  return { ...process.env, ...connection, HIBERNAUT_APP: "" };
}

async function running(folder: string, ...args: string[]): Promise<ChildProcess> {
  return spawn(process.execPath, [CLI, ...args], { cwd: folder, env: await environment(), stdio: "ignore" });
}

async function hibernaut(folder: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const env = await environment();
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], { cwd: folder, env, timeout: 240_000 }, (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1, out, err });
    });
  });
}

async function folderWith(name: string, file: string, text: string): Promise<string> {
  const folder = join(place.dataDir, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, file), text);
  return folder;
}

test("an app with its fly.toml: deployed, used, asleep, woken; new code reaches it without waking it", async () => {
  const first = await registry.pushSmallApp("cafe:1", ["--label", "one"]);
  const folder = await folderWith(
    "cafe",
    "fly.toml",
    `app = "cafe"
primary_region = "ams"

[build]
  image = "${first}"

[env]
  PORT = "8080"

[http_service]
  internal_port = 8080
  force_https = true
  auto_stop_machines = "suspend"
  auto_start_machines = true
  min_machines_running = 0
  idle_timeout = 2

[[vm]]
  memory = "256mb"
  cpu_kind = "shared"
  cpus = 1
`,
  );
  const target = { proxyUrl: place.proxyUrl, app: "cafe" };
  const deployed = await hibernaut(folder, "deploy");
  expect(deployed, deployed.err).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^Deployed release 1 of cafe: 1 created\.\nApp cafe answers at http:\/\/cafe\.localhost:\d+\/\n$/,
    ),
  });
  expect(deployed.err).toMatch(/cpu_kind/); // not silently dropped
  expect((await ask(target)).text).toBe("one 1");
  const [machine] = await place.client.listMachines("cafe");
  const id = machine?.id ?? "";
  const asleep = () => place.client.waitForMachine("cafe", id, { state: ["suspended"], timeout: 60 });
  await asleep();
  const woken = await ask(target);
  expect([woken.text, wakeOf(woken).kind]).toEqual(["one 2", "warm"]);
  await asleep();

  const second = await registry.pushSmallApp("cafe:2", ["--label", "two"]);
  expect(await hibernaut(folder, "deploy", "--image", second)).toMatchObject({
    code: 0,
    out: expect.stringContaining("Deployed release 2 of cafe: 1 updated.\n"),
  });
  const sleeping = await place.client.getMachine("cafe", id);
  expect(sleeping).toMatchObject({ state: "suspended", snapshot: null });
  const cold = await ask(target);
  expect([cold.text, wakeOf(cold).kind]).toEqual(["two 1", "cold"]);

  // Deploying the same again changes nothing; the old image is a way back.
  expect((await hibernaut(folder, "deploy", "--image", second)).out).toMatch(/^Deployed release 3 of cafe: 1 kept\.\n/);
  expect((await hibernaut(folder, "deploy")).code).toBe(0);
  expect((await ask(target)).text).toBe("one 1");
  const releases = await hibernaut(folder, "releases");
  expect(releases.out.match(/^v\d+ +complete/gm)).toHaveLength(4);
  await place.client.destroyApp("cafe", { force: true });
});

test("with --prewarm, the first visitor of a new version does not wait for its start", { tags: "again" }, async () => {
  const old = await registry.pushSmallApp("dawn:1", ["--label", "old"]);
  const newer = await registry.pushSmallApp("dawn:2", ["--label", "new"]);
  const bad = await registry.pushSmallApp("dawn:3", ["--label", "bad", "--health", "500"]);
  const service = '[http_service]\ninternal_port = 8080\nauto_stop_machines = "suspend"\n';
  const check = '[[http_service.checks]]\npath = "/health"\ninterval = "1s"\ngrace_period = "1s"\n';
  const file = `app = "dawn"\n[build]\nimage = "${old}"\n[deploy]\nprewarm = true\n${service}${check}`;
  const folder = await folderWith("dawn", "hibernaut.toml", file);
  const target = { proxyUrl: place.proxyUrl, app: "dawn" };
  expect(await hibernaut(folder, "deploy")).toMatchObject({ code: 0 });
  const [machine] = await place.client.listMachines("dawn");
  const id = machine?.id ?? "";
  const asleep = async () => {
    await place.client.suspendMachine("dawn", id);
    await place.client.waitForMachine("dawn", id, { state: ["suspended"], timeout: 60 });
  };
  await asleep();
  const deployed = await hibernaut(folder, "deploy", "--image", newer);
  expect(deployed, deployed.err).toMatchObject({ code: 0, err: expect.stringMatching(/is suspended again\.$/m) });
  const visited = await ask(target);
  expect([visited.text, wakeOf(visited).kind]).toEqual(["new 1", "warm"]);

  await asleep();
  const failed = await hibernaut(folder, "deploy", "--image", bad);
  expect(failed).toMatchObject({ code: 1, err: expect.stringMatching(/has the new version, and its check .* fails/) });
  expect((await hibernaut(folder, "releases", "--limit", "1")).out).toMatch(/^v3 +failed/m);
  await place.client.waitForMachine("dawn", id, { state: ["stopped"], timeout: 60 });
  expect((await hibernaut(folder, "deploy", "--image", newer)).code).toBe(0);
  expect((await ask(target)).text).toBe("new 1");
  await place.client.destroyApp("dawn", { force: true });
});

describe("an app with two machines", () => {
  let folder: string;
  let good: string;
  const target = () => ({ proxyUrl: place.proxyUrl, app: "kiosk" });
  beforeAll(async () => {
    good = await registry.pushSmallApp("shop:good", ["--label", "good"]);
    folder = await folderWith(
      "shop",
      "hibernaut.toml",
      `app = "kiosk"
[build]
image = "${good}"
[http_service]
internal_port = 8080
auto_stop_machines = "off"
min_machines_running = 2
[[http_service.checks]]
method = "GET"
path = "/health"
interval = "2s"
timeout = "5s"
grace_period = "3s"
`,
    );
    const deployed = await hibernaut(folder, "deploy");
    expect(deployed, deployed.err).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^Deployed release 1 of kiosk: 2 created\.\nApp kiosk answers at http:\/\/kiosk\.localhost:\d+\/\n$/,
      ),
    });
  });
  afterAll(() => place.client.destroyApp("kiosk", { force: true }));

  test("a version that fails its check leaves the old one answering, without one failed request", {
    tags: "again",
  }, async () => {
    const bad = await registry.pushSmallApp("shop:bad", ["--label", "bad", "--health", "500"]);
    const asking = new AbortController();
    const answers: string[] = [];
    const failures: unknown[] = [];
    const client = async () => {
      while (!asking.signal.aborted) {
        try {
          const { status, text } = await ask(target());
          if (status !== 200) failures.push(`${status} ${text}`);
          answers.push(text.split(" ")[0] ?? "");
        } catch (error) {
          failures.push(error);
        }
        await delay(PAUSE_MS);
      }
    };
    const clients = [client(), client()];
    const failed = await hibernaut(folder, "deploy", "--image", bad);
    expect(failed.code, failed.err).toBe(1);
    expect(failed.err).toMatch(/its check .* fails: 500 no database\. The other 1 machine keeps the old version\./);
    expect(failed.err).toContain(`--image ${good}`);
    const back = await hibernaut(folder, "deploy");
    expect(back, back.err).toMatchObject({ code: 0 });
    asking.abort();
    await Promise.all(clients);
    expect(failures).toEqual([]);
    expect(new Set(answers)).toEqual(new Set(["good"]));
    expect(answers.length).toBeGreaterThan(50);
  });

  test("a deploy that is killed, and one whose platform is killed, are finished by deploying again", {
    tags: "again",
  }, async () => {
    const newer = await registry.pushSmallApp("shop:newer", ["--label", "newer"]);
    const versions = async () => (await place.client.listMachines("kiosk")).map(({ version }) => version);
    const before = await versions();
    const begun = async () => {
      await expect
        .poll(async () => (await versions()).filter((version) => !before.includes(version)).length, {
          timeout: 60_000,
          interval: 20,
        })
        .toBe(1);
    };

    const killed = await running(folder, "deploy", "--image", newer);
    await begun();
    killed.kill("SIGKILL");
    await once(killed, "exit");
    expect((await hibernaut(folder, "releases")).out).toMatch(/^v\d+ +pending/m);
    const again = await hibernaut(folder, "deploy", "--image", newer);
    expect(again, again.err).toMatchObject({ code: 0 });
    const images = async () =>
      new Set(
        (await place.client.listMachines("kiosk")).map(
          ({ config, state }) => `${state} ${config.image.replace(/@sha256:\w{64}$/, "")}`,
        ),
      );
    expect(await images()).toEqual(new Set([`running ${newer}`]));

    before.splice(0, before.length, ...(await versions()));
    const orphaned = await running(folder, "deploy");
    await begun();
    // It may end before the platform's processes are gone.
    const ended = once(orphaned, "exit");
    await place.served.kill();
    const [code] = (await ended) as [number];
    expect(code).toBe(1);
    await place.served.start();
    const finished = await hibernaut(folder, "deploy");
    expect(finished, finished.err).toMatchObject({ code: 0 });
    expect(await images()).toEqual(new Set([`running ${good}`]));
    expect((await ask(target())).text).toMatch(/^good/);
  });

  test("has one machine after scale count 1", { tags: "again" }, async () => {
    expect((await hibernaut(folder, "scale", "count", "1", "--yes")).code).toBe(0);
    expect(await place.client.listMachines("kiosk")).toHaveLength(1);
  });
});
