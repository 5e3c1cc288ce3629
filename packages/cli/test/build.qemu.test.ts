/** From six lines of code to a machine that sleeps and wakes, with nothing but two commands. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { ask, wakeOf } from "../../platform/test/helpers/proxied.ts";
import { Place, WARM } from "../../platform/test/helpers/served.ts";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { Project } from "./build/project.ts";
import { runCli } from "./real-cli.ts";

const SERVER = `const { createServer } = require("node:http");
const nonce = Math.random();
let count = 0;
createServer((_, response) => {
  response.end(JSON.stringify({ nonce, count: ++count, user: process.getuid(), cwd: process.cwd() }));
}).listen(process.env.PORT);
`;

const place = Place.forTests(WARM);
const temp = useTempFolder("built");
let project: Project;
beforeAll(async () => {
  project = new Project(temp.path, "six");
});
afterAll(async () => {
  vi.unstubAllEnvs();
});

interface Answer {
  nonce: number;
  count: number;
  user: number;
  cwd: string;
}

/** Asks the app at the proxy. */
async function visit(): Promise<Answer & { wake: string }> {
  const reply = await ask(place);
  return { ...(JSON.parse(reply.text) as Answer), wake: wakeOf(reply).kind };
}

test("launch, deploy, ask, sleep, wake: the server keeps its memory", async () => {
  vi.stubEnv("HIBERNAUT_BUILD_DIR", project.builds);
  project.write("server.js", SERVER);
  const hib = (...args: string[]) => runCli(place, args, { cwd: project.path });

  const launched = await hib("launch", "--name", place.app);
  expect(launched, launched.err).toMatchObject({ code: 0, out: expect.stringContaining("built as node") });
  const deployed = await hib("deploy");
  expect(deployed, deployed.err).toMatchObject({ code: 0, out: expect.stringContaining("1 created") });

  const first = await visit();
  expect(first).toMatchObject({ count: 1, user: 1000, cwd: "/app" });
  expect((await hib("suspend")).code).toBe(0);
  expect(await visit()).toMatchObject({ nonce: first.nonce, count: 2, wake: "warm" });

  expect((await hib("deploy")).out).toContain("1 kept");
  expect(await visit()).toMatchObject({ nonce: first.nonce, count: 3 });
  expect(readFileSync(join(project.path, "hibernaut.toml"), "utf8")).toContain('builder = "node"');
});
