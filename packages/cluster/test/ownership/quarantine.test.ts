/** Files that wait in quarantine are not lost to what is repeated after a crash. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MachineFiles } from "@hibernaut/machines/files";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";

async function machineWith(folder: string, text: string): Promise<void> {
  await mkdir(join(folder, "machines", "m1"), { recursive: true });
  await writeFile(join(folder, "machines", "m1", "layer.ext4"), text);
}

test("a platform that is killed after it moved them, and does it again, keeps them", async () => {
  const folder = await tempFolder();
  const files = new MachineFiles(folder, 16);
  await machineWith(folder, "precious");
  await files.quarantine("m1", 1);
  await files.quarantine("m1", 1);
  expect(await readFile(join(folder, "quarantine", "m1-1", "layer.ext4"), "utf8")).toBe("precious");
});

test("files of the same epoch wait next to each other", async () => {
  const folder = await tempFolder();
  const files = new MachineFiles(folder, 16);
  for (const text of ["first", "second"]) {
    await machineWith(folder, text);
    await files.quarantine("m1", 1);
  }
  expect((await readdir(join(folder, "quarantine"))).sort()).toEqual(["m1-1", "m1-1-2"]);
  expect(await readFile(join(folder, "quarantine", "m1-1", "layer.ext4"), "utf8")).toBe("first");
});
