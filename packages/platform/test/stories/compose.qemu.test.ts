/** A project of several services, from its compose file to machines that sleep together and wake each other. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Run } from "../../../cli/test/real-cli.ts";
import { longOr } from "../helpers/long.ts";
import { nginxConf, nginxImage } from "../helpers/projects/images.ts";
import { Project } from "../helpers/projects/project.ts";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const UP_TIMEOUT_MS = 300_000;
const CYCLES = longOr(50, 1);

const place = Place.forTests({ HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
const cafe = new Project(place, "cafe");
/** What the first `compose up` said. */
let first: Run;

/** Notes that the web server leads to, on a volume that only the project can reach. The job is done before anybody asks. */
const composeFile = (nginx: string) => `
services:
  web:
    image: ${nginx}
    ports: ["8080:80"]
    volumes: ["./nginx.conf:/etc/nginx/nginx.conf:ro"]
    depends_on:
      notes: {condition: service_healthy}
      job: {condition: service_completed_successfully}
    mem_limit: 128m
    x-hibernaut: {idle_timeout: 2s}
  job:
    image: ${SMALL_APP}
    command: --say done --fail 0
    mem_limit: 128m
    depends_on: [notes]
  notes:
    image: ${SMALL_APP}
    container_name: notebook
    expose: [8080]
    volumes: ["rows:/data"]
    healthcheck: {test: "curl -f http://localhost:8080/health", interval: 2s}
    mem_limit: 128m
    x-hibernaut: {idle_timeout: 2s}
volumes: {rows: {}}
`;

beforeAll(async () => {
  await cafe.write({
    "compose.yaml": composeFile(await nginxImage()),
    "nginx.conf": nginxConf("location / { proxy_pass http://notebook:8080; }"),
  });
  first = await cafe.up("--json");
}, UP_TIMEOUT_MS);

// Not every run has the story that ends with this.
afterAll(() => cafe.destroy());

/** Resolves once the line is on the disk. */
const write = (line: string) => cafe.ask("web", "/sure", { method: "POST", body: line });
const lines = async () => (await cafe.ask("web", "/notes")).text.trim().split("\n");

test("comes up in order, with names, and falls asleep; an unchanged file leaves it so", {
  timeout: UP_TIMEOUT_MS,
}, async () => {
  expect(first.code, first.err).toBe(0);
  expect(JSON.parse(first.out)).toMatchObject({
    project: "cafe",
    services: [
      { service: "notes", app: "cafe-notes", action: "deployed" },
      { service: "job", app: "cafe-job", action: "ran" },
      { service: "web", app: "cafe-web", action: "deployed" },
    ],
  });
  expect(await place.client.getApp("cafe-notes")).toMatchObject({
    network: { name: "cafe", address: expect.stringMatching(/^198\.1[89]\./), aliases: ["notes", "notebook"] },
  });
  expect(await write("Before the first sleep")).toMatchObject({ status: 200 });
  await cafe.asleep("web", "notes");
  const again = await cafe.done("up");
  expect(again.out).toMatch(/notes +cafe-notes +kept\n *job +cafe-job +kept\n *web +cafe-web +kept/);
  expect((await cafe.machine("notes")).state, "nobody woke it").toBe("suspended");
});

test("one request to the front wakes all, and no acknowledged line is lost", {
  timeout: 60_000 + CYCLES * 60_000,
}, async () => {
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    await cafe.asleep("web", "notes");
    expect(await write(`Cycle ${cycle}`)).toMatchObject({ status: 200 });
  }
  expect((await cafe.machine("notes")).last_boot).toMatchObject({ kind: "resume" });
  expect(await lines()).toEqual([
    "Before the first sleep",
    ...Array.from({ length: CYCLES }, (_, at) => `Cycle ${at}`),
  ]);
});

test("nobody else finds or reaches what is behind it, by name, by address, or from outside", {
  tags: "again",
}, async () => {
  const image = await sandboxImage();
  await place.client.createApp("stranger");
  const { machine_id: id } = await place.client.createMachine("stranger", { config: { image } });
  await place.client.waitForMachine("stranger", id, { timeout: 60 });
  await cafe.asleep("web", "notes");
  const { network } = await place.client.getApp("cafe-notes");
  const connect = async (host: string) => {
    const request =
      "exec 3<>/dev/tcp/$0/8080 && echo -e 'GET /health HTTP/1.0\\r\\n\\r' >&3 && read -r line <&3 && echo in";
    const { stdout, stderr } = await place.client.runExec("stranger", id, {
      command: ["bash", "-c", request, host],
      timeout: 60,
    });
    return `${stdout}${stderr}`;
  };
  expect(await connect("notebook")).toMatch(/not known|Temporary failure|No address/);
  expect(await connect(network?.address ?? "")).not.toMatch(/^in/);
  expect(await cafe.ask("notes")).toMatchObject({ status: 404 });
  expect((await cafe.machine("notes")).state, "nobody woke it").toBe("suspended");
  await place.client.destroyApp("stranger", { force: true });
});

test("a preview of it finds its own by the same names, sleeps and wakes with them, and goes as a whole", {
  tags: "again",
  timeout: UP_TIMEOUT_MS,
}, async () => {
  expect(first.code, first.err).toBe(0);
  const preview = new Project(place, "pr-12--cafe");
  expect(await write("A real line")).toMatchObject({ status: 200 });
  const before = await lines();
  const brought = await cafe.up("--preview", "pr-12");
  expect(brought.code, brought.err).toBe(0);
  expect(await preview.ask("web", "/sure", { method: "POST", body: "A line to try" })).toMatchObject({ status: 200 });
  await preview.asleep("web", "notes");
  // The web server asks `notebook`: in the preview, that is another one than in the project.
  expect((await preview.ask("web", "/notes")).text.trim()).toBe("A line to try");
  expect((await preview.machine("notes")).last_boot).toMatchObject({ kind: "resume" });
  expect(await lines()).toEqual(before);
  await cafe.done("compose", "down", "--preview", "pr-12", "--yes");
  const left = (await place.client.listApps()).map(({ name }) => name);
  expect(left.filter((name) => name.startsWith("pr-12"))).toEqual([]);
  expect(await lines()).toEqual(before);
});

test("down keeps the data, and up has it again; with --volumes, nothing is left", {
  tags: "again",
  timeout: UP_TIMEOUT_MS,
}, async () => {
  expect(await write("Before it went down")).toMatchObject({ status: 200 });
  const refused = await cafe.run("compose", "down");
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("Add --yes") });
  await cafe.done("compose", "down", "--yes");
  expect(await place.client.listMachines("cafe-notes")).toEqual([]);
  await cafe.done("compose", "up", "--wait-timeout", "180");
  expect(await write("After all")).toMatchObject({ status: 200 });
  expect(await lines()).toContain("Before it went down");
  await cafe.done("compose", "down", "--volumes", "--yes");
  expect((await place.client.listApps()).map(({ name }) => name)).toEqual(["shop"]);
});
