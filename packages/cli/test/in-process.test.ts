/** The program in the process of the tests is as much by itself as one in a process of its own. */
import { mkdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { needsProcess, runInProcess } from "./in-process.ts";

test("commands at the same time have their own directory, environment and streams, and the tests keep theirs", async () => {
  const root = await tempFolder("in-process");
  const before = { ...process.env };
  const [folder, stdout] = [process.cwd(), process.stdout];
  const validate = (app: string) => {
    const project = join(root, app);
    mkdirSync(project);
    writeFileSync(join(project, "hibernaut.toml"), `app = "${app}"\n[build]\nimage = "${app}:1"\n`);
    return runInProcess(["config", "show"], { folder: project, environment: {} });
  };
  const all = await Promise.all(["one", "two", "three"].map(validate));
  for (const [index, app] of ["one", "two", "three"].entries()) {
    expect(all[index]).toMatchObject({ code: 0, stderr: "" });
    expect(all[index]?.stdout).toContain(`${app}:1`);
  }
  expect({ ...process.env }).toEqual(before);
  expect([process.cwd(), process.stdout]).toEqual([folder, stdout]);
});

test("the home of who runs the tests is refused, as for any program", async () => {
  const environment = { HOME: userInfo().homedir };
  await expect(runInProcess(["--version"], { folder: "/nowhere", environment })).rejects.toThrow(/home of the person/);
});

test.each(["TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "HIBERNAUT_API_CA"])("%s is for a whole process", (name) => {
  expect(needsProcess({ [name]: "x" })).toBe(true);
  expect(needsProcess({ HIBERNAUT_APP: "shop" })).toBe(false);
});
