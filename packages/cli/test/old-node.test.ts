/**
 * Commands, started with a Node that is too old for them: the one that Debian or Ubuntu brings. All take the same way to the
 * newer Node, so one command of each kind is tried.
 *
 * @module-tag again
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OLD_NODES, oldNode } from "../../../scripts/lib/test-nodes.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { PROGRAM, useCli } from "./helpers.ts";

const cli = useCli();
const platform = () => ({ HIBERNAUT_API_URL: cli.server.url, HIBERNAUT_API_TOKEN: cli.server.token });

test.each(OLD_NODES)("with Node %s a command reaches the platform", async (major) => {
  const env = { PATH: process.env.PATH, ...platform() };
  const { stdout } = await promisify(execFile)(oldNode(major), [PROGRAM, "apps", "list"], { env });
  expect(stdout).toMatch(/^shop /m);
});

test("with Node 18 each kind of command does its work: requests, pipes and signals, an app file, the host's own", async () => {
  const folder = await tempFolder("old");
  const environment = {
    PATH: process.env.PATH,
    HOME: folder,
    HIBERNAUT_DATA_DIR: join(folder, "data"),
    // The links of this host are none of the test's.
    HIBERNAUT_LINK_FOLDER: folder,
    HIBERNAUT_APP: "shop",
    ...platform(),
  };
  const start = (words: string, more: Record<string, string> = {}) =>
    spawn(oldNode("18"), [PROGRAM, ...words.split(" ")], { cwd: folder, env: { ...environment, ...more } });
  const run = async (words: string, { input = "", env = {} } = {}) => {
    const child = start(words, env);
    child.stdin.end(input);
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: child.exitCode, out, err };
  };

  await writeFile(join(folder, "Dockerfile"), "FROM scratch\nEXPOSE 8080\n");
  expect(await run("launch --name blog --image me/blog:1")).toMatchObject({ code: 0 });
  const deployed = await run("deploy", { env: { HIBERNAUT_APP: "blog" } });
  expect(deployed.out, deployed.err).toMatch(/^Deployed release 1 of blog: 1 created\.$/m);

  // What is piped in comes through, and so does a signal.
  const id = await cli.run();
  const input = "through and back";
  expect(await run(`machine exec ${id} -- cat`, { input })).toMatchObject({ code: 0, out: input });
  expect((await run(`machine console ${id}`)).err).toMatch(/a shell needs a terminal/i);
  const forward = start(`machine forward ${id} 0:80 --json`);
  expect(String((await once(forward.stdout, "data"))[0])).toContain('"port":80');
  forward.kill("SIGINT");
  expect(await once(forward, "exit")).toEqual([0, null]);

  // The host's own commands load the platform's TypeScript.
  expect((await run("serve", { env: { HIBERNAUT_API_LISTEN: "nonsense" } })).err).toMatch(/must be host:port/);
  expect((await run("proxy", { env: { HIBERNAUT_PROXY_LISTEN: "nonsense" } })).err).toMatch(/must be host:port/);
  const doctor = await run("doctor", { env: { HIBERNAUT_GUEST_BUNDLE: join(folder, "none") } });
  expect(doctor.out).toMatch(/^ok +node +24\./m);
  await mkdir(join(folder, "data/run"), { recursive: true });
  expect(await run("uninstall")).toMatchObject({ code: 0 });
});
