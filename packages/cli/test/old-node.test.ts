/**
 * Every command, started with a Node that is too old for it: the one that Debian or Ubuntu brings.
 *
 * @module-tag again
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { OLD_NODES, oldNode } from "../../../scripts/lib/test-nodes.mjs";
import { longOr } from "../../platform/test/helpers/long.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { Noun } from "../src/command.ts";
import { NOUNS } from "../src/commands.ts";
import { startCli } from "./helpers.ts";
import { writeTinyLayout } from "./tiny-layout.ts";

const PROGRAM = join(import.meta.dirname, "../bin/hibernaut.js");
/** Without the short forms of others. */
const ALL = namesOf(NOUNS);
/** Some seventy programs, two processes each, on a host that does other things. */
const LIMIT_MS = 180_000;
/** All take the same way to the newer Node, so the usual run tries one command of each kind. */
const THOROUGH = longOr([...OLD_NODES], []);

function namesOf(nouns: readonly Noun[]): string[] {
  return nouns.flatMap(({ name, commands, nouns: below = [] }) => {
    const own = commands.filter(({ hidden }) => hidden !== true).map((command) => command.name);
    return [...own, ...namesOf(below)].map((words) => `${name} ${words}`.trim());
  });
}

test.each(OLD_NODES)("with Node %s a command reaches the platform", async (major) => {
  const cli = await startCli();
  onTestFinished(() => cli.close());
  const env = { PATH: process.env.PATH, HIBERNAUT_API_URL: cli.server.url, HIBERNAUT_API_TOKEN: cli.server.token };
  const { stdout } = await promisify(execFile)(oldNode(major), [PROGRAM, "apps", "list"], { env });
  expect(stdout).toMatch(/^shop /m);
});

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** A user of this Node in an empty directory, with a platform on a fake host. */
async function userWith(major: string) {
  const cli = await startCli();
  onTestFinished(() => cli.close());
  const folder = await tempFolder("old");
  const done = new Set<string>();
  const environment = {
    PATH: process.env.PATH,
    HOME: folder,
    HIBERNAUT_DATA_DIR: join(folder, "data"),
    // The links of this host are none of the test's.
    HIBERNAUT_LINK_FOLDER: folder,
    HIBERNAUT_APP: "shop",
  };

  function start(words: string[], env: Record<string, string>) {
    const name = ALL.find((one) => `${words.join(" ")} `.startsWith(`${one} `));
    if (name !== undefined) done.add(name);
    return spawn(oldNode(major), [PROGRAM, ...words], { cwd: folder, env: { ...environment, ...env } });
  }

  async function hib(words: string, { input = "", more = [] as string[], env = {} } = {}): Promise<Ended> {
    const child = start([...words.split(" "), ...more], {
      HIBERNAUT_API_URL: cli.server.url,
      HIBERNAUT_API_TOKEN: cli.server.token,
      ...env,
    });
    child.stdin.end(input);
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: child.exitCode, out, err };
  }
  async function good(words: string, options: Parameters<typeof hib>[1] = {}): Promise<string> {
    const { code, out, err } = await hib(words, options);
    expect(code, `${words}: ${err}`).toBe(0);
    return out;
  }
  const json = async (words: string) => JSON.parse(await good(`${words} --json`)) as { id: string; state: string };
  /** What is piped in comes through, and so does a signal. */
  async function useStreams(id: string): Promise<void> {
    const input = "through and back";
    expect(await good(`machine exec ${id}`, { more: ["--", "cat"], input })).toBe(input);
    expect((await hib(`machine console ${id}`)).err).toMatch(/a shell needs a terminal/i);
    const forward = start(["machine", "forward", id, "0:80", "--json"], {
      HIBERNAUT_API_URL: cli.server.url,
      HIBERNAUT_API_TOKEN: cli.server.token,
    });
    expect(String((await once(forward.stdout, "data"))[0])).toContain('"port":80');
    forward.kill("SIGINT");
    expect(await once(forward, "exit")).toEqual([0, null]);
  }
  /** The host's own commands: they load the platform's TypeScript. */
  async function useHost(): Promise<void> {
    expect((await hib("serve", { env: { HIBERNAUT_API_LISTEN: "nonsense" } })).err).toMatch(/must be host:port/);
    expect((await hib("proxy", { env: { HIBERNAUT_PROXY_LISTEN: "nonsense" } })).err).toMatch(/must be host:port/);
    const doctor = await hib("doctor", { env: { HIBERNAUT_GUEST_BUNDLE: join(folder, "none") } });
    expect(doctor.out).toMatch(/^ok +node +24\./m);
    await mkdir(join(folder, "data/run"), { recursive: true });
    await good("uninstall");
  }
  return { cli, folder, done, hib, good, json, useStreams, useHost };
}

test("with Node 18 each kind of command does its work: requests, pipes and signals, an app file, the host's own", async () => {
  const { folder, good, json, useStreams, useHost } = await userWith("18");
  await writeFile(join(folder, "Dockerfile"), "FROM scratch\nEXPOSE 8080\n");
  await good("launch --name blog --image me/blog:1");
  expect(await good("deploy", { env: { HIBERNAUT_APP: "blog" } })).toMatch(
    /^Deployed release 1 of blog: 1 created\.$/m,
  );
  const { id } = await json("machine run me/app:1 --port 8080");
  await useStreams(id);
  await useHost();
});

test.each(THOROUGH)("with Node %s every command does its work", { timeout: LIMIT_MS }, async (major) => {
  const { cli, folder, done, hib, good, json, useStreams, useHost } = await userWith(major);

  // An app file, a release, and the machines that come of it.
  await writeFile(join(folder, "Dockerfile"), "FROM scratch\nEXPOSE 8080\n");
  await good("launch --name blog --image me/blog:1");
  await good("config validate");
  expect(await good("config show")).toContain("8080");
  const blog = { env: { HIBERNAUT_APP: "blog" } };
  expect(await good("deploy", blog)).toMatch(/^Deployed release 1 of blog: 1 created\.$/m);
  expect(await good("deploy --image me/blog:2", blog)).toMatch(/^Deployed release 2 of blog: 1 updated\.$/m);
  expect(await good("releases", blog)).toMatch(/^v2 +complete(.*\n)*v1 +complete/m);
  expect(await good("scale count 2", blog)).toMatch(/^Created machine /m);
  await good("scale memory 512", blog);
  await good("scale count 1 --yes", blog);
  expect(await good("scale show", blog)).toContain("512");

  await good("apps create notes");
  expect(await good("apps list")).toMatch(/^notes /m);
  expect(await good("apps update notes --max-machines 50")).toMatch(/machines .* 50 +app/);
  expect(await good("apps show notes")).toMatch(/running .* no limit/);
  await good("apps destroy notes");

  // A machine's life.
  const { id } = await json("machine create --image me/app:1 --port 8080");
  expect((await json("machine run me/app:1 --port 8080")).state).toBe("running");
  await good(`machine start ${id}`);
  await useStreams(id);
  // The fake guest says back what it is sent.
  expect(await good(`machine cp - ${id}:/tmp`, { input: "2 7\n" })).toMatch(/^Copied 2 entries/);
  await good(`machine cordon ${id}`);
  await good(`machine uncordon ${id}`);
  expect(await good(`machine why ${id}`)).toMatch(/ is running\.$/m);
  expect(await good("open")).toMatch(/^http/);
  const copy = await json(`machine clone ${id}`);
  await good(`machine destroy ${copy.id} --force`);
  await good(`machine suspend ${id}`);
  await good(`machine wait ${id} --state suspended`);
  await good(`machine restart ${id}`);
  await good(`machine update ${id} --memory 512`);
  expect(await good("machine list")).toContain(id);
  expect(await good("ps")).toContain(id);
  expect(await good("status")).toMatch(/machines/);
  expect(await good("top")).toMatch(/WHY IT IS AWAKE/);
  expect(await good("usage")).toMatch(/shop/);
  expect(await good("completion bash")).toContain("complete -F _hibernaut");
  expect((await json(`machine status ${id}`)).state).toBe("running");
  expect(await good(`machine events ${id}`)).toMatch(/suspend/);
  await cli.server.print(id, "a line");
  expect(await good("logs")).toContain("a line");
  expect(await good("events")).toContain("machine.running");
  expect(await good("drain")).toMatch(/^Draining/);
  expect(await good("undrain")).toMatch(/^The drain is over/);
  await good(`machine stop ${id}`);
  await good(`machine destroy ${id}`);

  await good("hostnames add www.example.com");
  expect(await good("hostnames list")).toContain("www.example.com");
  expect(await good("certs add www.example.com")).toMatch(/^www.example.com has a certificate until /);
  expect(await good("certs list")).toMatch(/^www.example.com +valid /m);
  expect(await good("certs check www.example.com")).toMatch(/^ok /);
  await good("certs remove www.example.com");
  await good("hostnames remove www.example.com");

  await good("secrets set KEY=-", { input: "secret" });
  expect(await good("secrets list")).toContain("KEY");
  await good("secrets unset KEY");
  await good("secrets import", { input: "OTHER=value\n" });

  const volume = await json("volumes create data");
  expect(await good("volumes list")).toContain(volume.id);
  await good(`volumes show ${volume.id}`);
  await good(`volumes extend ${volume.id} --size 2`);
  await good(`volumes update ${volume.id} --snapshot-retention 7`);
  const snapshot = await json(`volumes snapshots create ${volume.id}`);
  expect(await good(`volumes snapshots list ${volume.id}`)).toContain(snapshot.id);
  await good(`volumes snapshots destroy ${volume.id} ${snapshot.id}`);
  await good(`volumes destroy ${volume.id} --yes`);

  await good("images pull me/tool:1");
  expect(await good("images list")).toContain("me/tool:1");
  await good("images prune");
  await writeTinyLayout(join(folder, "tiny"));
  expect(await good("images push oci:./tiny")).toMatch(/^upload:tiny@sha256:/);
  // The fake store makes no image of an upload, so this one stays open.
  const [, digest = ""] = /^upload:tiny +([0-9a-f]{12}) /m.exec(await good("images uploads")) ?? [];
  await good(`images cancel ${digest}`);

  await good("backup create ./all.tar");
  await good("backup verify ./all.tar");
  await good("backup restore ./all.tar --data ./restored");

  await good("registry login ghcr.io -u me --password-stdin", { input: "right" });
  expect(await good("registry list")).toContain("ghcr.io");
  await good("registry logout ghcr.io");

  await good("tokens create ci");
  expect(await good("tokens list")).toMatch(/ci/);
  const { id: old = "" } = cli.server.tokens.list().find(({ name }) => name === "ci") ?? {};
  expect(await good(`tokens rotate ${old}`)).toMatch(/^hib_/);
  await good(`tokens revoke ${old}`);
  expect(await good("audit --limit 1")).toMatch(/end 200 .* DELETE \/v1\/tokens\//);

  const hook = await json(`webhooks create http://127.0.0.1:${new URL(cli.server.url).port}/ --event app`);
  expect(await good("webhooks list")).toContain(hook.id);
  expect(await good(`webhooks show ${hook.id}`)).toMatch(/^state +enabled$/m);
  await good(`webhooks update ${hook.id} --event certificate --app shop`);
  // Nothing receives there.
  expect((await hib(`webhooks test ${hook.id}`)).err).toMatch(/did not arrive\. The receiver answered 404/);
  expect(await good(`webhooks deliveries ${hook.id}`)).toMatch(/was not sent anything/);
  expect(await good(`webhooks rotate ${hook.id}`)).toMatch(/^whsec_/);
  await good(`webhooks disable ${hook.id}`);
  await good(`webhooks enable ${hook.id} --skip`);
  await good(`webhooks remove ${hook.id} --yes`);

  await useHost();

  expect([...done].sort()).toEqual(ALL.toSorted());
});
