/** An app file that the platform would refuse: a deploy notices before it changes anything. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { startCli, type TestCli } from "../helpers.ts";

// Each test starts a process, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cli: TestCli;
beforeAll(async () => {
  cli = await startCli();
});
afterAll(() => cli.close());

test.each([
  ["the name of a volume", '[mounts]\nsource = "My-Data"\ndestination = "/data"', ":5:1: error: mounts.source: "],
  [
    "the size of a volume",
    '[mounts]\nsource = "data"\ndestination = "/data"\ninitial_size = "10tb"',
    ":7:1: error: mounts.initial_size: This is 10240 GB",
  ],
  ["the name of a process group", '[processes]\n"my web" = "serve"', ':5:1: error: processes."my web": '],
  ["the name of a variable", '[env]\n"A=B" = "1"', ':5:1: error: env."A=B": '],
  ["the path of a file", '[[files]]\nguest_path = "/proc/a"\nraw_value = ""', ":5:1: error: files[0].guest_path: "],
])("%s", async (_what, text, finding) => {
  const file = join(await tempFolder("deploy"), "hibernaut.toml");
  await writeFile(file, `app = "blog"\n[build]\nimage = "app:1"\n${text}\n`);
  const { code, stderr } = await cli.hibernaut(["deploy", "--config", file], { HIBERNAUT_APP: "" });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(file + finding) });
  expect((await cli.json(["apps", "list"])).document.map(({ name }: { name: string }) => name)).toEqual(["shop"]);
});
