/** Copies that are large or many, and copies that are cut off: nothing grows with them, and the old file stays. */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { beforeAll, expect, test } from "vitest";
import { runCli, spawnCli } from "../../../cli/test/real-cli.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";
import { useTempFolder } from "../helpers/temp.ts";

const FILES = 10_000;
const PIECE = 1 << 20;
const PIECES = 1024;
/** A writable layer with room for the GB twice. */
const LAYER_MB = 4096;
/** How much more memory a copy may take, in MB: buffers, and what the garbage collector of Node has not freed yet. */
const PLATFORM_GROWS_MB = 96;
const AGENT_GROWS_MB = 1;
const KB_PER_MB = 1024;

const place = Place.forTests({ HIBERNAUT_LAYER_SIZE_MB: String(LAYER_MB) });
let id: string;
const folder = useTempFolder("copies");
let here: string;
beforeAll(async () => {
  const config = { image: await shellImage(), init: { cmd: ["-c", "exec sleep 36000"] }, services: [] };
  id = (await place.machine(config)).machine_id;
  here = folder.path;
  const file = await open(join(here, "large"), "w");
  for (let piece = 0; piece < PIECES; piece += 1) await file.write(randomBytes(PIECE));
  await file.close();
});

const sh = async (script: string) => {
  const { stdout } = await place.client.runExec(place.app, id, { command: ["sh", "-c", script], timeout: 600 });
  return stdout;
};
const cp = async (...words: string[]) => {
  const run = await runCli(place, ["machine", "cp", ...words], { cwd: here });
  expect(run).toMatchObject({ code: 0 });
};
const megabytes = (status: string, line: string) =>
  Number(new RegExp(`${line}:\\s+(\\d+) kB`).exec(status)?.[1]) / KB_PER_MB;

/** Memory that the platform and the agent have used at most since they started, in MB. */
async function peaks() {
  const platform = megabytes(await readFile(`/proc/${place.served.pid}/status`, "utf8"), "VmHWM");
  return { platform, agent: megabytes(await sh("cat /proc/1/status"), "VmHWM") };
}

async function sum(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

test("10,000 small files both ways", { timeout: 1_800_000 }, async () => {
  await mkdir(join(here, "many"));
  for (let index = 0; index < FILES; index += 1) await writeFile(join(here, "many", String(index)), `file ${index}`);
  const before = await peaks();
  await cp("many", `${id}:/root-many`);
  await cp(`${id}:/root-many`, "back");
  expect(await readdir(join(here, "back"))).toHaveLength(FILES);
  for (let index = 0; index < FILES; index += 1)
    expect(await readFile(join(here, "back", String(index)), "utf8")).toBe(`file ${index}`);
  const after = await peaks();
  expect(after.platform - before.platform).toBeLessThan(PLATFORM_GROWS_MB);
  expect(after.agent - before.agent).toBeLessThan(AGENT_GROWS_MB);
});

test("a file of 1 GB both ways", { timeout: 1_800_000 }, async () => {
  const before = await peaks();
  await cp("large", `${id}:/large`);
  const inside = (await sh("sha256sum /large")).split(" ")[0];
  await cp(`${id}:/large`, "larger");
  const after = await peaks();
  const wanted = await sum(join(here, "large"));
  expect([inside, await sum(join(here, "larger"))]).toEqual([wanted, wanted]);
  expect(after.platform - before.platform).toBeLessThan(PLATFORM_GROWS_MB);
  expect(after.agent - before.agent).toBeLessThan(AGENT_GROWS_MB);
});

test("the CLI is killed, and the platform is: the old file stays, and no other", { timeout: 600_000 }, async () => {
  await sh("mkdir /cut && echo old > /cut/large");
  const partial = async () => /\.hibernaut-/.test(await sh("ls -A /cut"));
  const begin = async () => {
    const child = spawnCli(place, ["machine", "cp", join(here, "large"), `${id}:/cut/large`]);
    await expect.poll(partial, { timeout: 60_000 }).toBe(true);
    return child;
  };
  (await begin()).kill("SIGKILL");
  await expect.poll(partial, { timeout: 60_000 }).toBe(false);
  expect(await sh("cat /cut/large")).toBe("old\n");

  const child = await begin();
  await place.served.kill();
  await place.served.start();
  await expect.poll(partial, { timeout: 60_000 }).toBe(false);
  expect(await sh("cat /cut/large")).toBe("old\n");
  child.kill("SIGKILL");

  // The other way: the file here is the one that stays.
  await sh("head -c 1000000000 /dev/zero > /zeros");
  await writeFile(join(here, "kept"), "old");
  const out = spawnCli(place, ["machine", "cp", `${id}:/zeros`, join(here, "kept")]);
  const temporary = async () => (await readdir(here)).filter((name) => name.startsWith(".hibernaut-"));
  await expect.poll(temporary, { timeout: 60_000 }).toHaveLength(1);
  await place.served.kill();
  await place.served.start();
  await expect.poll(temporary, { timeout: 60_000 }).toHaveLength(0);
  expect((await stat(join(here, "kept"))).size).toBe(3);
  out.kill("SIGKILL");
});
