/**
 * A pull request's preview of an app with data, on real machines: it sleeps, wakes by its hostname, shares nothing with the
 * app, and goes when its time is over, while the app keeps all.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { diskOf } from "../helpers/notebook.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";
import { slowed, waitS } from "../helpers/slow.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const PREVIEW = "pr-12--cafe";
/** The shortest time that a preview can have, and the grace after it. */
const END_MS = 61_000;

const place = Place.forTests({ HIBERNAUT_IDLE_CHECK_INTERVAL: "1", HIBERNAUT_PREVIEW_GRACE: "1s" });
let folder: string;
let ci: Record<string, string>;

const hibernaut = (...args: string[]) => runCli(place, args, { cwd: folder, more: { HIBERNAUT_APP: "" } });
const asCi = (...args: string[]) => runCli(place, args, { cwd: folder, more: { HIBERNAUT_APP: "", ...ci } });
const at = (app: string) => ({ proxyUrl: place.proxyUrl, app });
const write = (app: string, body: string) => ask(at(app), "/sure", { method: "POST", body });
const notes = async (app: string) => (await ask(at(app), "/notes")).text.split("\n").filter(Boolean);

/** The only machine of an app, and its volume. */
async function only(app: string): Promise<{ id: string; volume: string }> {
  const [machine, ...others] = await place.client.listMachines(app);
  expect(others).toEqual([]);
  return { id: machine?.id ?? "", volume: machine?.config.mounts?.[0]?.volume ?? "" };
}

async function asleep(app: string): Promise<void> {
  const { id } = await only(app);
  await place.client.waitForMachine(app, id, { state: ["suspended"], timeout: waitS(60) });
}

beforeAll(async () => {
  folder = join(place.dataDir, "cafe");
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "hibernaut.toml"),
    `app = "cafe"
[build]
  image = "${SMALL_APP}"
[http_service]
  internal_port = 8080
  auto_stop_machines = "suspend"
  idle_timeout = "1s"
[[mounts]]
  source = "data"
  destination = "/data"
`,
  );
  const deployed = await hibernaut("deploy");
  expect(deployed.code, deployed.err).toBe(0);
  await write("cafe", "a real order");
  const { token } = await place.client.createToken("ci", { scopes: ["deploy"], apps: ["cafe"], previews: true });
  ci = { HIBERNAUT_API_TOKEN: token };
});

afterAll(async () => {
  for (const { name } of await place.client.listApps())
    if (name.endsWith("cafe")) await place.client.destroyApp(name, { force: true });
});

test("a CI job deploys a preview, which sleeps and wakes by its hostname, with data of its own", async () => {
  // It uploads the image, because its token reads no file of the platform's host.
  const deployed = await asCi("deploy", "--preview", "pr-12", "--upload");
  expect(deployed.code, deployed.err).toBe(0);
  expect(deployed.out).toContain(`App ${PREVIEW} answers at http://${PREVIEW}.localhost`);
  expect(await notes(PREVIEW)).toEqual([]);
  await write(PREVIEW, "an order to try");
  await asleep(PREVIEW);
  const woken = await ask(at(PREVIEW));
  expect(wakeOf(woken).kind).toMatch(/^(warm|resume)$/);
  expect(await notes(PREVIEW)).toEqual(["an order to try"]);
  expect(await notes("cafe")).toEqual(["a real order"]);
  const [production, preview] = [await only("cafe"), await only(PREVIEW)];
  expect(preview.volume).not.toBe(production.volume);
  const foreign = await asCi("machine", "list", "--app", "cafe");
  expect(foreign).toMatchObject({ code: 1, err: expect.stringContaining("limited to previews of cafe") });
});

test("a preview begins with a copy of what the app has while that sleeps, and changes only its own", async () => {
  await asleep("cafe");
  const before = await only("cafe");
  const deployed = await hibernaut("deploy", "--preview", "pr-13", "--copy-volumes");
  expect(deployed.code, deployed.err).toBe(0);
  expect(deployed.err).toContain(`Copied volume ${before.volume} (data) of cafe to the preview.`);
  expect((await place.client.getMachine("cafe", before.id)).state).toBe("suspended");
  expect(await notes("pr-13--cafe")).toEqual(["a real order"]);
  await write("pr-13--cafe", "an order to try");
  expect(await notes("cafe")).toEqual(["a real order"]);
  const gone = await hibernaut("previews", "destroy", "pr-13", "--yes");
  expect(gone.code, gone.err).toBe(0);
  expect(await notes("cafe")).toEqual(["a real order"]);
});

test("it is gone after its time, also if the platform was stopped meanwhile, and the app keeps all", {
  timeout: slowed(240_000),
}, async () => {
  const [production, preview] = [await only("cafe"), await only(PREVIEW)];
  await asleep(PREVIEW);
  const renewed = await asCi("previews", "create", "pr-12", "--ttl", "60s");
  expect(renewed.code, renewed.err).toBe(0);
  await place.served.stop();
  await place.served.start();
  const apps = async () => (await place.client.listApps()).map(({ name }) => name);
  expect(await apps()).toContain(PREVIEW);
  await expect.poll(apps, { timeout: slowed(END_MS + 60_000), interval: 500 }).not.toContain(PREVIEW);
  expect(existsSync(diskOf(place.dataDir, preview.volume))).toBe(false);
  expect(existsSync(diskOf(place.dataDir, production.volume))).toBe(true);
  expect((await ask(at(PREVIEW))).status).toBe(404);
  expect(await notes("cafe")).toEqual(["a real order"]);
  expect(await only("cafe")).toEqual(production);
});
