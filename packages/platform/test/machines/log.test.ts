import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { AppLog } from "../../src/machines/log.ts";
import { tempFolder } from "../helpers/temp.ts";

test("an app that prints without end fills two files of bounded size, the newest lines kept", async () => {
  const folder = await tempFolder("log");
  const path = join(folder, "app.log");
  const log = new AppLog(path);
  const chunk = Buffer.alloc(64 * 1024, "x");
  const write = async (data: Buffer) => {
    while (!log.write(data)) await new Promise((resolve) => setImmediate(resolve));
  };
  for (let written = 0; written < 12 * 1024 * 1024; written += chunk.length) await write(chunk);
  await write(Buffer.from("last line\n"));
  log.close();
  await expect.poll(async () => (await readFile(path, "utf8")).endsWith("last line\n")).toBe(true);
  expect((await readdir(folder)).sort()).toEqual(["app.log", "app.log.1"]);
  for (const name of await readdir(folder)) expect((await stat(join(folder, name))).size).toBeLessThan(5 * 1024 * 1024);
});

test("a log whose folder went away disturbs nobody", async () => {
  const log = new AppLog(join(await tempFolder("log"), "gone", "app.log"));
  log.write(Buffer.from("lost\n"));
  await new Promise((resolve) => setImmediate(resolve));
  log.close();
});
