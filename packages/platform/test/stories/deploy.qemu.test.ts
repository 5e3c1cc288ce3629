/**
 * From an app's directory to running machines: the CLI, a real registry, real machines, the real proxy.
 *
 * @module-tag again
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { type RealRegistry, startRegistry } from "../../../images/test/real-registry.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place, WARM } from "../helpers/served.ts";
import { packSmallAppWith } from "../helpers/small-app/image.ts";

const place = Place.forTests({ ...WARM, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
let registry: RealRegistry;
beforeAll(async () => {
  registry = await startRegistry(place.dataDir);
});
afterAll(() => registry.stop());

/** Of a visitor, between two requests: those who never pause take the CPU time that the deploy needs. */
const PAUSE_MS = 10;

/** In a directory with an app file, which names the app. */
const hibernaut = (cwd: string, ...args: string[]) => runCli(place, args, { cwd, more: { HIBERNAUT_APP: "" } });

/** Pushes the small app with these arguments. Returns its reference. */
async function push(name: string, args: string[]): Promise<string> {
  const layout = join(place.dataDir, "layouts", name.replace(":", "-"));
  await packSmallAppWith(args, layout);
  await registry.push(layout, name);
  return `${registry.host}/${name}`;
}

async function folderWith(name: string, file: string, text: string): Promise<string> {
  const folder = join(place.dataDir, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, file), text);
  return folder;
}

test("an app with its fly.toml: deployed, used, asleep, woken; new code reaches it without waking it", async () => {
  const first = await push("cafe:1", ["--label", "one"]);
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

  const second = await push("cafe:2", ["--label", "two"]);
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

test("a version that fails its check leaves the old one answering, without one failed request", {
  tags: "again",
}, async () => {
  const good = await push("shop:good", ["--label", "good"]);
  const bad = await push("shop:bad", ["--label", "bad", "--health", "500"]);
  const folder = await folderWith(
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
  expect(deployed, deployed.err).toMatchObject({ code: 0, out: expect.stringMatching(/^Deployed .*: 2 created\./) });
  const asking = new AbortController();
  const answers: string[] = [];
  const failures: unknown[] = [];
  const client = async () => {
    while (!asking.signal.aborted) {
      try {
        const { status, text } = await ask({ proxyUrl: place.proxyUrl, app: "kiosk" });
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
  await place.client.destroyApp("kiosk", { force: true });
});
