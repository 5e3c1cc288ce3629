/** Archives of a backup that did not come from a platform. */
import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { extractArchive } from "../src/extract.ts";
import { patient } from "./targets/helpers.ts";

const run = promisify(execFile);

test("a link at any depth ends the restore before anything follows it", async () => {
  const folder = await tempFolder("extract");
  const [outside, to, from] = ["outside", "to", "from"].map((name) => join(folder, name));
  for (const path of [outside, to, join(from ?? "", "machines", "m1")]) await mkdir(path ?? "", { recursive: true });
  await symlink(outside ?? "", join(from ?? "", "machines", "m1", "snapshots"));
  const file = join(folder, "first.tar");
  await run("tar", ["-C", from ?? "", "-cf", file, "machines"]);
  await expect(extractArchive(createReadStream(file), to ?? "", patient())).rejects.toThrow(/neither a file nor/);
  expect(await readdir(outside ?? "")).toEqual([]);
});

test("tar may stop reading where an archive ends", async () => {
  const folder = await tempFolder("extract");
  const [to, file] = [join(folder, "to"), join(folder, "a.tar")];
  await mkdir(to);
  await writeFile(join(folder, "x"), "x");
  await run("tar", ["-C", folder, "-cf", file, "x"]);
  async function* padded() {
    for await (const chunk of createReadStream(file)) yield chunk as Buffer;
    for (let more = 0; more < 64; more += 1) yield Buffer.alloc(1024 * 1024);
  }
  await extractArchive(padded(), to, patient());
  expect(await readdir(to)).toEqual(["x"]);
});
