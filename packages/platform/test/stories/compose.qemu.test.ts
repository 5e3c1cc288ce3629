/** A project of several services, from its compose file to machines that sleep together and wake each other. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask as sql } from "../../../../services/orders/test/postgres/server.ts";
import { type Run, runCli } from "../../../cli/test/real-cli.ts";
import { longOr } from "../helpers/long.ts";
import { postgresImage } from "../helpers/postgres-image.ts";
import { ask } from "../helpers/proxied.ts";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";

const ROOT = join(import.meta.dirname, "../../../..");
/** Under emulation, the first start of a database takes its time, and so does Node's. */
const READY_TIMEOUT_MS = "110000";
const UP_TIMEOUT_MS = 400_000;
const CYCLES = longOr(50, 1);

const place = Place.forTests({ HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
let folder: string;
/** What the first `compose up` said. */
let first: Run;
const hibernaut = (...args: string[]) => runCli(place, args, { cwd: folder, more: { HIBERNAUT_APP: "" } });

/** What a command said that has to work. */
async function done(running: Promise<Run>): Promise<Run> {
  const run = await running;
  expect(run.code, run.err).toBe(0);
  return run;
}

/** Orders, as its README would have it, with a database that only the project can reach. */
const composeFile = (postgres: string) => `
services:
  web:
    image: oci:${join(ROOT, ".build/orders")}:latest
    ports: ["8080:3000"]
    environment: &database
      DB_HOST: database
      DB_USER: postgres
      DB_PASSWORD: \${DB_PASSWORD:-unused}
      DB_NAME: postgres
      DB_TIMEOUT_MS: "30000"
      DB_START_TIMEOUT_MS: "90000"
    depends_on:
      db: {condition: service_healthy}
      job: {condition: service_completed_successfully}
    x-hibernaut: {idle_timeout: 2s}
  job:
    image: ${postgres}
    entrypoint: [/bin/sh, -c, "exit 0"]
    depends_on: [db]
  db:
    image: ${postgres}
    container_name: database
    expose: [5432]
    volumes: ["rows:/data"]
    healthcheck: {test: "pg_isready -U postgres", interval: 2s}
    stop_grace_period: 60s
    x-hibernaut: {idle_timeout: 2s}
volumes: {rows: {}}
`;

beforeAll(async () => {
  folder = join(place.dataDir, "cafe");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "compose.yaml"), composeFile(await postgresImage()));
  first = await hibernaut("compose", "up", "--wait-timeout", "180", "--json");
}, UP_TIMEOUT_MS);

// Not every run has the story that ends with this.
afterAll(async () => {
  for (const { name } of await place.client.listApps())
    if (name.startsWith("cafe-")) await place.client.destroyApp(name, { force: true });
});

const web = () => ({ proxyUrl: place.proxyUrl, app: "cafe-web" });
const write = (name: string) =>
  ask(web(), "/suppliers", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([{ companyName: name, country: "Norway" }]),
  });
const machineOf = async (app: string) => {
  const [machine] = await place.client.listMachines(app);
  if (machine === undefined) throw new Error(`${app} has no machine`);
  return machine;
};
/** What the database has, which has to be awake: asked at its machine, from the host. */
const names = async () => {
  const { private_address: host } = await machineOf("cafe-db");
  const access = { host, port: 5432, user: "postgres", password: "", database: "postgres" };
  const rows = await sql(access, 'SELECT "companyName" AS name FROM suppliers ORDER BY id');
  return rows.map(({ name }) => name);
};
const asleep = async () => {
  for (const app of ["cafe-web", "cafe-db"]) {
    const { id } = await machineOf(app);
    await place.client.waitForMachine(app, id, { state: "suspended", timeout: 60 });
  }
};

test("comes up in order, with names, and falls asleep; an unchanged file leaves it so", {
  timeout: UP_TIMEOUT_MS,
}, async () => {
  expect(first.code, first.err).toBe(0);
  expect(JSON.parse(first.out)).toMatchObject({
    project: "cafe",
    services: [
      { service: "db", app: "cafe-db", action: "deployed" },
      { service: "job", app: "cafe-job", action: "ran" },
      { service: "web", app: "cafe-web", action: "deployed" },
    ],
  });
  expect(await place.client.getApp("cafe-db")).toMatchObject({
    network: { name: "cafe", address: expect.stringMatching(/^198\.1[89]\./), aliases: ["db", "database"] },
  });
  expect(await write("Before the first sleep")).toMatchObject({ status: 201 });
  await asleep();
  const again = await hibernaut("up");
  expect(again.code).toBe(0);
  expect(again.out).toMatch(/db +cafe-db +kept\n *job +cafe-job +kept\n *web +cafe-web +kept/);
  expect((await machineOf("cafe-db")).state, "nobody woke it").toBe("suspended");
});

test("one request to the front wakes all, and no acknowledged row is lost", {
  timeout: 60_000 + CYCLES * 60_000,
}, async () => {
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    await asleep();
    expect(await write(`Cycle ${cycle}`)).toMatchObject({ status: 201 });
  }
  expect((await machineOf("cafe-db")).last_boot).toMatchObject({ kind: "resume" });
  expect(await names()).toEqual([
    "Before the first sleep",
    ...Array.from({ length: CYCLES }, (_, at) => `Cycle ${at}`),
  ]);
});

test("nobody else finds or reaches its database, by name, by address, or from outside", { tags: "again" }, async () => {
  const image = await sandboxImage();
  await place.client.createApp("stranger");
  const { machine_id: id } = await place.client.createMachine("stranger", { config: { image } });
  await place.client.waitForMachine("stranger", id, { timeout: 60 });
  await asleep();
  const { network } = await place.client.getApp("cafe-db");
  const connect = async (host: string) => {
    const command = ["bash", "-c", `exec 3<>/dev/tcp/${host}/5432 && echo x >&3 && read -r line <&3 && echo in`];
    const { stdout, stderr } = await place.client.runExec("stranger", id, { command, timeout: 60 });
    return `${stdout}${stderr}`;
  };
  expect(await connect("database")).toMatch(/not known|Temporary failure|No address/);
  expect(await connect(network?.address ?? "")).not.toMatch(/^in/);
  expect(await ask({ ...web(), app: "cafe-db" })).toMatchObject({ status: 404 });
  expect((await machineOf("cafe-db")).state, "nobody woke it").toBe("suspended");
  await place.client.destroyApp("stranger", { force: true });
});

test("down keeps the data, and up has it again; with --volumes, nothing is left", {
  tags: "again",
  timeout: UP_TIMEOUT_MS,
}, async () => {
  expect(await write("Before it went down")).toMatchObject({ status: 201 });
  const refused = await hibernaut("compose", "down");
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("Add --yes") });
  await done(hibernaut("compose", "down", "--yes"));
  expect(await place.client.listMachines("cafe-db")).toEqual([]);
  await done(hibernaut("compose", "up", "--wait-timeout", "180"));
  expect(await write("After all")).toMatchObject({ status: 201 });
  expect(await names()).toContain("Before it went down");
  await done(hibernaut("compose", "down", "--volumes", "--yes"));
  expect((await place.client.listApps()).map(({ name }) => name)).toEqual(["shop"]);
});
