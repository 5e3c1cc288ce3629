/**
 * Apps that crash, listen where nobody comes, or are killed: what their owner and their visitors are told, and the way out.
 *
 * @module-tag again
 */
import { appendFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { Place } from "../../platform/test/helpers/served.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Run, runCli } from "./real-cli.ts";

const place = Place.forTests();
let folder: string;
beforeAll(async () => {
  folder = join(place.dataDir, "project");
  await mkdir(folder);
});

async function destroyAll(): Promise<void> {
  for (const { id } of await place.client.listMachines(place.app)) {
    await place.client.destroyMachine(place.app, id, { force: true });
    await place.reach(id, "destroyed");
  }
}

const hib = (...args: string[]) => runCli(place, args, { cwd: folder });
const visit = () => ask({ proxyUrl: place.proxyUrl, app: place.app });
const machine = async () => {
  const [only] = await place.client.listMachines(place.app);
  if (only === undefined) throw new Error("there is no machine");
  return only;
};

/** The arguments decide what the small app does. */
async function appFile(args: string[], port = 8080): Promise<void> {
  const cmd = JSON.stringify(args);
  await writeFile(
    join(folder, "hibernaut.toml"),
    `app = "${place.app}"\n[build]\nimage = "${SMALL_APP}"\n[experimental]\ncmd = ${cmd}\n[http_service]\ninternal_port = ${port}\nauto_stop_machines = "suspend"\n`,
  );
}

const SERVER = ["--text", "version 2"];
const ON_LOOPBACK = [...SERVER, "--host", "127.0.0.1"];
const CRASH = ["--say", "no database at db.internal", "--fail", "7"];

// The first here: once a release worked, its port is not a guess any more.
describe("an app that listens on a port that nothing names", () => {
  afterEach(destroyAll);

  test("launch and deploy work, the file has the port, and the next deploy changes nothing", async () => {
    const file = join(folder, "hibernaut.toml");
    await rm(file, { force: true });
    expect((await hib("launch", "--name", place.app, "--image", SMALL_APP, "--yes")).code).toBe(0);
    const args = ["--port", "3000", ...SERVER];
    await appendFile(file, `\n# Mine.\n[experimental]\n  cmd = ${JSON.stringify(args)}\n`);
    const written = await readFile(file, "utf8");
    const deployed = await hib("deploy");
    expect(deployed.code, deployed.err).toBe(0);
    expect(deployed.err).toContain("The app listens on port 3000, and hibernaut.toml names no port.");
    expect(await readFile(file, "utf8")).toBe(
      written.replace("[http_service]\n", "[http_service]\n  internal_port = 3000\n"),
    );
    expect((await visit()).text).toBe("version 2");
    expect((await hib("deploy")).out).toContain("1 kept");
  });
});

describe("an app that crashes at its start", () => {
  afterEach(destroyAll);

  test("deploy says how it ended and what it printed; the corrected version takes over at once", {
    tags: "again",
  }, async () => {
    await appFile(CRASH);
    const bad = await hib("deploy");
    expect(bad.code, bad.err).toBe(1);
    expect(bad.err).toMatch(/crashed on start: the app exited with code 7/);
    expect(bad.err).toMatch(/no database at db\.internal/);
    const { out } = await hib("releases", "--limit", "1");
    expect(out.trim().split("\n")).toEqual([
      expect.stringMatching(/^VERSION /),
      expect.stringMatching(/failed .*exited with code 7\.$/),
    ]);
    await appFile(SERVER);
    const good = await hib("deploy");
    expect(good.code, good.err).toBe(0);
    expect((await visit()).text).toBe("version 2");
  });

  test("the advice that is given works: stop ends the retries", { tags: "again" }, async () => {
    const run = await hib("machine", "run", SMALL_APP, "--port", "8080", "--", ...CRASH);
    const advised = /`hibernaut (machine stop [^`]+)`/.exec(run.err)?.[1]?.split(" ") ?? [];
    expect((await hib(...advised)).code).toBe(0);
    expect(await machine()).toMatchObject({ state: "stopped", crash: null });
  });
});

describe("an app that crashes at each start", () => {
  let run: Run;
  beforeAll(async () => {
    run = await hib("machine", "run", SMALL_APP, "--port", "8080", "--", ...CRASH);
  });
  afterAll(destroyAll);

  test("everybody sees the next attempt, and visitors are told at once", { tags: "again" }, async () => {
    expect(run.code, run.err).toBe(1);
    expect(run.err).toMatch(/crashed on start: the app exited with code 7/);
    expect(run.err).toMatch(/It restarts (now|in \d+ s), attempt \d+ of 10/);
    expect(run.err).toMatch(/no database at db\.internal/);
    const { id } = await machine();
    await place.reach(id, "settled");
    await expect
      .poll(async () => (await hib("machine", "status", id)).out, { timeout: 60_000 })
      .toMatch(/restarting in \d+ s, attempt \d+ of 10: the app exited with code 7/);
    await expect.poll(async () => (await hib("ps")).out, { timeout: 60_000 }).toMatch(/\(crash loop, \d+ of 10\)/);
    const answer = await visit();
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: "app_crashed",
      message: expect.stringMatching(/the app exited with code 7/),
    });
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  });

  test("restart, scale and update are accepted whatever it is at, and tell how it went", {
    tags: "again",
  }, async () => {
    const { id } = await machine();
    const restart = await hib("machine", "restart", id);
    expect(restart).toMatchObject({ code: 1, err: expect.stringMatching(/exited with code 7/) });
    expect(restart.err.match(/no database/g), "the words of its last run alone").toHaveLength(1);
    const scale = await hib("scale", "memory", "320");
    expect(scale).toMatchObject({ code: 1, err: expect.stringMatching(/exited with code 7/) });
    expect((await machine()).config.guest?.memory_mb).toBe(320);
    const { config } = await machine();
    await place.client.updateMachine(place.app, id, { ...config, init: { cmd: SERVER } });
    await place.reach(id, "running");
    expect((await visit()).text).toBe("version 2");
  });
});

describe("an app that listens where nobody comes", () => {
  afterEach(destroyAll);

  test("on loopback: the deploy fails with the remedy, and so does a visit, at once", { tags: "again" }, async () => {
    await appFile(ON_LOOPBACK);
    const bad = await hib("deploy");
    expect(bad.code, bad.err).toBe(1);
    expect(bad.err).toMatch(/listens on 127\.0\.0\.1:8080 only.*have it listen on 0\.0\.0\.0:8080/);
    const answer = await visit();
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: "upstream_unreachable",
      message: expect.stringMatching(/listens on 127\.0\.0\.1:8080 only/),
    });
    expect((await hib("machine", "status", (await machine()).id)).out).toMatch(/127\.0\.0\.1:8080 only/);
  });

  test("on another port than the service's: run warns of it", { tags: "again" }, async () => {
    const run = await hib("machine", "run", SMALL_APP, "--port", "9999");
    expect(run.code, run.err).toBe(0);
    expect(run.err).toMatch(/Warning: Requests do not reach machine .*port 9999.*8080/);
    expect(JSON.parse((await visit()).text)).toMatchObject({ error: "upstream_unreachable" });
  });

  test("it is fine as soon as it listens everywhere", { tags: "again" }, async () => {
    await appFile([...ON_LOOPBACK, "--anywhere-after", "6000"]);
    expect((await hib("deploy")).code).toBe(1);
    await expect.poll(async () => (await machine()).unreachable, { timeout: 30_000 }).toBeNull();
    // The proxy of another host than the machine's hears of it a moment later.
    await expect.poll(async () => (await visit()).text, { timeout: 30_000 }).toBe("version 2");
  });
});

describe("a virtual machine that is killed", () => {
  beforeAll(async () => {
    await appFile(SERVER);
    expect((await hib("deploy")).code).toBe(0);
  });
  afterAll(destroyAll);

  test("while it runs: who asks at once waits for it, and is answered", async () => {
    const [{ pid } = { pid: 0 }] = await place.processes();
    expect(pid).toBeGreaterThan(0);
    process.kill(pid, "SIGKILL");
    const answer = await visit();
    expect(answer).toMatchObject({ status: 200, text: "version 2" });
    // Also if the request was on its way when the machine ended, and found it running again when it was sent again.
    expect(answer.headers["hibernaut-wake"]).toMatch(/^cold; dur=/);
    expect(await place.processes()).not.toContainEqual(expect.objectContaining({ pid }));
  });

  test.each(longOr([0, 100, 1500], [100]))(
    "while it starts, %i ms after QEMU appeared: the visitor who woke it is answered",
    { tags: "again" },
    async (ms) => {
      const { id } = await machine();
      await place.client.stopMachine(place.app, id);
      await place.reach(id, "stopped");
      const answer = visit();
      await expect.poll(async () => (await place.processes()).length, { interval: 2, timeout: 30_000 }).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, ms)); // which moment of the start is hit is the point
      const [{ pid } = { pid: 0 }] = await place.processes();
      expect(pid).toBeGreaterThan(0);
      process.kill(pid, "SIGKILL");
      expect(await answer).toMatchObject({ status: 200, text: "version 2" });
      expect(await machine()).toMatchObject({ state: "running" });
    },
  );
});
