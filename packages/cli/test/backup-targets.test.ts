/**
 * `hibernaut backup targets` and what is done with them, against a platform on a fake host and a real repository of restic.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, test } from "vitest";
import { findTool } from "../../../scripts/lib/test-tools.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { freshCli } from "./helpers.ts";

const run = promisify(execFile);
const cli = freshCli();
const { hibernaut, json } = cli;
let folder: string;
let repository: string;
let keyFile: string;

beforeEach(async () => {
  folder = await tempFolder("targets");
  repository = join(folder, "repository");
  keyFile = join(folder, "key.txt");
});

/** Adds the target, and keeps its key as a user would. */
async function add(options = ""): Promise<void> {
  const { code, stdout, stderr } = await hibernaut(`backup targets add usb ${repository} ${options}`);
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("It is not shown again.") });
  await writeFile(keyFile, stdout);
}

const ENVIRONMENT = {
  HIBERNAUT_RESTIC: findTool("restic"),
  // For other programs, because the target is a directory.
  AWS_ACCESS_KEY_ID: "other",
  AWS_SECRET_ACCESS_KEY: "other",
};
const fromTarget = (...words: string[]) =>
  hibernaut(["backup", "restore", repository, "--key-file", keyFile, ...words], ENVIRONMENT);
const restore = (data: string, ...more: string[]) => fromTarget("--data", data, ...more);

/** Calls restic as an administrator would. */
async function restic(...words: string[]): Promise<string> {
  const key = (await readFile(keyFile, "utf8")).trim();
  const env = { ...process.env, RESTIC_REPOSITORY: repository, RESTIC_PASSWORD: key };
  return (await run(ENVIRONMENT.HIBERNAUT_RESTIC, ["--no-cache", ...words], { env })).stdout;
}

test("a target is added, backed up to, listed, checked, and gives everything back to a new directory", async () => {
  await cli.run("--name web");
  await add();
  const made = await hibernaut("backup run");
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Backed up .* MB to usb as \S+, verified; /) });
  const { document: sets } = await json("backup list");
  expect(sets).toMatchObject([{ target: "usb", state: "complete", apps: ["shop"], machines: 1, own: true }]);
  expect((await hibernaut("backup list")).stdout).toMatch(/^usb +\S+ +\d+ s ago +complete /m);
  expect((await hibernaut("backup targets list")).stdout).toMatch(/^usb +\S+ +complete \d+ s ago/m);
  expect(await hibernaut("backup targets check usb --read-data")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("all of it was read"),
  });
  const data = join(folder, "data");
  const restored = await restore(data);
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining(`HIBERNAUT_DATA_DIR=${data}`) });
  expect((await stat(data)).mode & 0o777).toBe(0o700);
  expect(await readdir(data)).toEqual(expect.arrayContaining(["hibernaut.db", "machines", "backup-targets.json"]));
});

test("nothing is restored with another key, over anything else, or from a time without a backup", async () => {
  await add();
  await hibernaut("backup run");
  expect((await restore(folder)).stderr).toMatch(/is not empty/);
  const data = join(folder, "data");
  expect((await restore(data, "--at", "2020-01-01T00:00")).stderr).toMatch(
    /complete and old enough. It has \d{8}T\d{6}Z-\S+ of \S+\.$/m,
  );
  await writeFile(keyFile, "not the key of that repository");
  expect((await restore(data)).stderr).toMatch(/this is not its key/);
  expect(await readdir(folder)).not.toContain("data");
});

test("the newest backup that has lost a piece is told by a restore, which takes the one before, and by a list", async () => {
  await add();
  const sets: string[] = [];
  for (let night = 0; night < 2; night += 1) sets.push((await json("backup run")).document.last.set as string);
  const tag = `set=${sets[1] ?? ""}`;
  const [piece] = JSON.parse(await restic("snapshots", "--json", "--tag", tag, "--path", "/database.tar"));
  await restic("forget", piece.id);
  const listed = await fromTarget("--list");
  expect(listed.stdout).toMatch(/^TARGET +SET +AGE +STATE +SIZE +NEW +APPS/);
  const newest = new RegExp(`${sets[1] ?? ""} +\\d+ s ago +unreadable .*\\n.*${sets[0] ?? ""} +\\d+ s ago +complete `);
  expect(listed.stdout).toMatch(newest);
  expect((await fromTarget("--list", "-q")).stdout).toBe(`${sets[1] ?? ""}\n${sets[0] ?? ""}\n`);
  const restored = await restore(join(folder, "data"));
  expect(restored.stderr).toMatch(
    /Newer backups cannot be restored.* unreadable: 1 of its pieces are gone, such as database/s,
  );
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining(sets[0] ?? "") });
  const { stdout } = await restore(join(folder, "again"), "--json");
  expect(JSON.parse(stdout)).toMatchObject({ set: sets[0], passed_over: [{ set: sets[1], state: "unreadable" }] });
  expect(await fromTarget("--list", "--data", join(folder, "data"))).toMatchObject({ code: 2 });
});

test("a damaged backup leaves the new directory empty", async () => {
  await add();
  await hibernaut("backup run");
  const packs = join(repository, "data");
  for (const name of await readdir(packs, { recursive: true })) {
    const file = join(packs, name);
    if (!(await stat(file)).isFile()) continue;
    const bytes = await readFile(file);
    bytes.fill(0x55, 0, Math.min(200, bytes.length));
    // restic makes its files read-only.
    await chmod(file, 0o600);
    await writeFile(file, bytes);
  }
  expect(await hibernaut("backup targets check usb --read-data")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is damaged/),
  });
  const data = join(folder, "data");
  expect((await restore(data)).code).toBe(1);
  expect(await readdir(data).catch(() => [])).toEqual([]);
});

test("schedule and retention are changed, and a target is forgotten, with what is stored left alone", async () => {
  await add("--keep 7d,4w,6m");
  expect((await json(["backup", "targets", "update", "usb", "--schedule", "0 3 * * *"])).document).toMatchObject({
    schedule: "0 3 * * *",
    keep: "7d,4w,6m",
    next_at: expect.stringMatching(/T03:00:00/),
  });
  expect(await hibernaut("backup targets update usb --keep 7x")).toMatchObject({ code: 2 });
  expect(await hibernaut("backup targets remove usb")).toMatchObject({ code: 2 });
  expect(await hibernaut("backup targets remove usb --yes")).toMatchObject({ code: 0 });
  expect(await readdir(repository)).toContain("config");
  expect(await hibernaut("backup run")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("There is no target"),
  });
});

test("credentials come from standard input or the environment, and an S3 target without them is refused", async () => {
  const words = "backup targets add cloud s3://s3.invalid/bucket/prefix";
  expect(await hibernaut(words, { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/needs an access key and a secret key/),
  });
  expect((await hibernaut(`${words} --credentials-stdin`, {}, "one line\n")).stderr).toMatch(/must have two lines/);
});
