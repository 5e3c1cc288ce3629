/**
 * `hibernaut backup`, against a platform on a fake host.
 *
 * @module-tag again
 */
import { createReadStream, existsSync } from "node:fs";
import { appendFile, mkdir, open, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { useCli } from "./helpers.ts";

const cli = useCli();
const { hibernaut, json } = cli;
let folder: string;
let file: string;

beforeAll(() => cli.run("--name web"));
beforeEach(async () => {
  folder = await tempFolder("backup");
  file = join(folder, "backup.tar");
});

const create = () => hibernaut(`backup create ${file}`);
async function damage(): Promise<void> {
  await using handle = await open(file, "r+");
  await handle.write("x", Math.floor((await handle.stat()).size / 2));
}

test("a backup is made, found to be whole, and restored into a new directory", async () => {
  const made = await create();
  expect(made).toMatchObject({ code: 0 });
  expect(made.stdout).toMatch(/^Backed up 1 machine to .*backup\.tar, .* MB\. It holds all secrets: keep it/);
  expect(made.stdout).toMatch(/^The longest that a machine was paused: \d+ ms\.$/m);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(["backup.tar"]);
  expect(await hibernaut(`backup verify ${file}`)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/is whole: /),
  });
  const data = join(folder, "new", "data");
  const restored = await hibernaut(`backup restore ${file} --data ${data}`);
  expect(restored).toMatchObject({ code: 0 });
  expect(restored.stdout).toContain(`    HIBERNAUT_DATA_DIR=${data} hibernaut serve`);
  expect(restored.stdout).toContain("the same machines must not run twice");
  expect((await stat(data)).mode & 0o777).toBe(0o700);
  expect(await readdir(data)).toEqual(expect.arrayContaining(["hibernaut.db", "machines", "volumes"]));
  expect(await readdir(data)).not.toContain("backup.sha256");
});

test("a backup goes to standard output", async () => {
  const { child, ended } = cli.begin("backup create -");
  let bytes = 0;
  child.stdout.on("data", (chunk: string) => (bytes += chunk.length));
  expect(await ended).toMatchObject({ code: 0 });
  expect(bytes).toBeGreaterThan(10_000);
  expect(await json("backup create -")).toMatchObject({ code: 2 });
});

test("a file that is there is not replaced", async () => {
  await writeFile(file, "precious");
  expect(await create()).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/already exists\. Choose another name/),
  });
  expect(await readFile(file, "utf8")).toBe("precious");
});

test("damage of any kind is found, and nothing is restored from it", async () => {
  await create();
  const { size } = await stat(file);
  const whole = await readFile(file);
  const refused = async (why: RegExp) => {
    const { code, stderr } = await hibernaut(`backup verify ${file}`);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(why) });
    await writeFile(file, whole);
  };
  await damage();
  await refused(/its content is not what was written\. Use another backup/);
  await truncate(file, size - 512);
  await refused(/it does not end with a checksum/);
  await appendFile(file, Buffer.alloc(512));
  await refused(/it does not end with a checksum/);
  await writeFile(file, whole.subarray(512));
  await refused(/bytes in place of the \d+ that were written/);
  await writeFile(file, "");
  const data = join(folder, "data");
  expect(await hibernaut(`backup restore ${file} --data ${data}`)).toMatchObject({ code: 1 });
  expect(existsSync(data)).toBe(false);
  await refused(/cut off or is not a backup/);
  expect(await hibernaut(`backup verify ${folder}/none`)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/There is no file/),
  });
});

test("a restore needs an empty directory", async () => {
  await create();
  const data = join(folder, "data");
  await mkdir(data);
  await writeFile(join(data, "mine"), "");
  const refused = await hibernaut(`backup restore ${file} --data ${data}`);
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/is not empty: it has mine\. Nothing was changed/),
  });
  expect(await readdir(data)).toEqual(["mine"]);
  expect(await hibernaut(`backup restore ${file}`)).toMatchObject({ code: 2 });
});

test("a backup is verified and restored from standard input", async () => {
  await create();
  const pipe = async (words: string) => {
    const { child, ended } = cli.begin(`backup ${words}`);
    await pipeline(createReadStream(file), child.stdin).catch(() => {}); // it may not read to the end
    return ended;
  };
  expect(await pipe("verify -")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Standard input is whole: /),
  });
  const data = join(folder, "data");
  expect(await pipe(`restore - --data ${data}`)).toMatchObject({ code: 0 });
  expect(await readdir(data)).toEqual(expect.arrayContaining(["hibernaut.db", "machines", "volumes"]));
  expect(await pipe(`restore - --data ${data}`)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/is not empty/),
  });
  await damage();
  const other = join(folder, "other");
  expect(await pipe(`restore - --data ${other}`)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/standard input cannot be restored: its content is not what was written/),
  });
  expect(await readdir(other)).toEqual([]);
});

test("what cannot work is refused in plain words before anything begins", async () => {
  await create();
  const refused = async (words: string, why: RegExp) => {
    const { code, stderr } = await hibernaut(`backup ${words}`);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(why) });
  };
  await refused(`restore ${file} --data ${file}`, /^Error: .*backup\.tar is not a directory\. Nothing was changed\./);
  await refused(`restore ${file} --data ${file}/x`, /is not a directory\. Nothing was changed\./);
  await refused(`verify ${folder}`, /^Error: .* is a directory, not a backup\. Name the file of the backup\.$/m);
  const { machines } = cli.server.world.store;
  const [machine] = machines.list();
  const before = machines.events(machine?.id ?? "", 10);
  await refused(`create ${folder}/nodir/x`, /There is no directory .*nodir\. Create it first: mkdir -p /);
  await refused(`create ${file}/x`, /backup\.tar is not a directory\. Choose another place/);
  expect(machines.events(machine?.id ?? "", 10)).toEqual(before);
  expect((await json(`backup verify ${file}/x`)).code).toBe(1);
});

test("when the platform fails in the middle, the reason is told and no file is left", async () => {
  cli.server.world.host.faults.capture = new Error("ENOSPC: no space left on device, write");
  const failed = await create();
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(/The backup failed: ENOSPC.* has space, then back up again/);
  expect(await readdir(folder)).toEqual([]);
});

test("Ctrl-C leaves no file, and the machines run", async () => {
  const held = Promise.withResolvers<void>();
  const { host, store } = cli.server.world;
  host.hold.capture = held.promise;
  const { child, ended } = cli.begin(`backup create ${file}`);
  const [machine] = store.machines.list();
  await expect.poll(() => host.of(machine?.id ?? "")[0]?.running, { timeout: 20_000 }).toBe(false);
  child.kill("SIGINT");
  expect(await ended).toMatchObject({
    code: 130,
    stderr: expect.stringMatching(/^The backup was interrupted\. No file was written\.$/m),
  });
  delete host.hold.capture;
  held.resolve();
  await expect.poll(() => host.of(machine?.id ?? "")[0]?.running).toBe(true);
  await expect.poll(async () => (await json(`backup create ${file}`)).code, { timeout: 20_000 }).toBe(0);
  expect(await readdir(folder)).toEqual(["backup.tar"]);
});
