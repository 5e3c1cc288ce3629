/**
 * The CLI with a real platform and real machines: the README's tour.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { masked, parseTape, record, TAPE, tourOf } from "../../../scripts/lib/tape.mjs";
import { longOr } from "../../platform/test/helpers/long.ts";
import { askUntilAnswered, COUNTER_IMAGE } from "../../platform/test/helpers/qemu-world.ts";
import { Place, WARM } from "../../platform/test/helpers/served.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { environment, runCli } from "./real-cli.ts";

const ROOT = join(import.meta.dirname, "../../..");
/** It ends in a second cold start of Node, and another test here updates a machine that starts faster. */
const LAST_PART = /^hibernaut machine update /;

const place = Place.forTests(WARM);

const hib = (words: string) => runCli(place, words.split(" "));

const json = async (words: string) => {
  const { code, out, err } = await hib(`${words} --json`);
  expect(code, err).toBe(0);
  return JSON.parse(out) as never;
};

test("run, suspend, start, update, stop, destroy", { tags: "again" }, async () => {
  const made = (await json(`machine run ${SMALL_APP} --name counter --port 8080`)) as {
    id: string;
    private_address: string;
    state: string;
  };
  const { id, private_address: address } = made;
  expect(made.state).toBe("running");
  const first = await askUntilAnswered(address);

  expect((await hib("machine why")).out).toMatch(
    /^Machine counter is awake\. Its service has autostop off\.\nIts last start, .*, was cold, because it never ran before\./,
  );
  expect((await hib(`machine suspend ${id}`)).code).toBe(0);
  expect(await json(`machine status ${id}`)).toMatchObject({
    state: "suspended",
    snapshot: { size_bytes: expect.any(Number) },
  });
  expect((await hib(`machine start ${id}`)).code).toBe(0);
  expect(await askUntilAnswered(address)).toMatchObject({ nonce: first.nonce, count: first.count + 1 });
  expect(await json("machine list")).toMatchObject([{ id, state: "running", last_boot: { kind: "warm" } }]);

  const waited = await hib(`machine wait ${id} --state suspended --wait-timeout 1`);
  expect(waited.code, "124, as timeout(1) does").toBe(124);

  const { version } = (await json(`machine status ${id}`)) as { version: string };
  expect((await hib(`machine update ${id} --yes`)).out).toContain("already current");
  expect((await hib(`machine update ${id} --env NEW=1`)).code).toBe(0);
  const updated = (await json(`machine status ${id}`)) as { version: string };
  expect(updated).toMatchObject({
    state: "running",
    image: { ref: SMALL_APP },
    last_boot: { kind: "cold", reason: "updated" },
  });
  expect(updated.version).not.toBe(version);

  const busy = await hib(`machine destroy ${id}`);
  expect(busy).toMatchObject({ code: 1, out: "" });
  expect(busy.err).toMatch(/force/);
  expect(busy.err).not.toMatch(/\n\s+at /);
  expect((await hib(`machine stop ${id}`)).code).toBe(0);
  expect((await hib(`machine destroy ${id}`)).code).toBe(0);
  expect((await hib(`machine status ${id}`)).code).toBe(0);
  expect(await json("machine list")).toEqual([]);
});

test("doctor finds this host fit", async () => {
  // Where KVM never runs a guest, the proof takes all the time that it gets.
  const { code, out } = await runCli(place, ["doctor"], { more: { HIBERNAUT_KVM_PROOF_TIMEOUT: "2s" } });
  expect(code, out).toBe(0);
  expect(out).toMatch(/^ok +qemu/m);
  expect(out, "it looks at everything, to the end").toMatch(/^\w+ +accelerator +(?:kvm|tcg): /m);
  expect(out).toMatch(/^\w+ +snapshots /m);
});

test("the program in the client library's document runs as it is", async () => {
  const text = await readFile(join(ROOT, "docs/client.md"), "utf8");
  const program = [...text.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, block]) => block).join("");
  const folder = await tempFolder("client");
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "demo.mjs"), program);
  const env = {
    ...process.env,
    HIBERNAUT_API_URL: place.client.apiUrl,
    HIBERNAUT_API_TOKEN: await place.token(),
    IMAGE: COUNTER_IMAGE,
  };
  const { stdout } = await promisify(execFile)(process.execPath, ["demo.mjs"], { cwd: folder, env });
  expect(stdout).toMatch(
    /^demo answers at http:\/\/demo\.localhost:\d+\/\nwarm after \d+\S* ms\n0 42\nfrom the machine\n0\n0 2\nfirst: sleep\n\[ '\/tmp\/notes\/plan.txt' \]\n/,
  );
  expect(stdout).toMatch(/stdout counter listens on port 8080/);
  expect(stdout).toMatch(/nothing.*\n\[ 'web: running' \]\n$/);
  const { stdout: files } = await promisify(execFile)("tar", ["-tf", join(folder, "app.tar")]);
  expect(files).toContain("server.mjs");
});

test("the tour prints what its recording shows, apart from names, times and measurements", {
  tags: "again",
  // Two cold starts and a dozen commands, on a busy host.
  timeout: 300_000,
}, async () => {
  const commands = tourOf(await readFile(join(ROOT, "README.md"), "utf8"));
  const update = commands.findIndex((command) => LAST_PART.test(command));
  // The update, and the request that shows its effect.
  const isTyped = (index: number) => longOr(true, index !== update && index !== update + 1);
  const { HIBERNAUT_APP: _ours, ...env } = environment(place);
  const typed = commands.filter((_, index) => isTyped(index));
  const printed = await record(typed, { proxyUrl: place.proxyUrl, env });
  const recorded = parseTape(await readFile(join(ROOT, TAPE), "utf8")).filter((_, index) => isTyped(index));
  expect(masked(printed), "if it is meant to be different now: npm run tape").toBe(masked(recorded));
  const { count } = JSON.parse(printed.find(({ command }) => command.startsWith("curl -i"))?.output.at(-1) ?? "");
  expect(count).toBe(3);
});
