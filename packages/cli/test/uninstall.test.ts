import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { openStore } from "@hibernaut/store/open";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";

const PROGRAM = join(import.meta.dirname, "../bin/hibernaut");

/** A data directory with an app, and the command that would delete it. */
async function place() {
  const folder = await tempFolder("uninstall");
  const database = join(folder, "hibernaut.db");
  const store = openStore(database);
  store.apps.insert({ name: "shop", createdAt: new Date(0).toISOString() });
  store.close();
  const env = { PATH: process.env.PATH, HOME: folder, HIBERNAUT_DATA_DIR: folder, HIBERNAUT_LINK_FOLDER: folder };
  const run = async (program: string, args: string[], input: string) => {
    const child = spawn(program, args, { env, cwd: "/" });
    child.stdin.end(input);
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: child.exitCode, out, err };
  };
  return {
    there: () => existsSync(database),
    plain: (...args: string[]) => run(PROGRAM, ["uninstall", ...args], ""),
    /** At a terminal, where this is typed. */
    typing: (input: string) => run("script", ["-qec", `exec ${PROGRAM} uninstall --data`, "/dev/null"], input),
  };
}

test("uninstall --data deletes nothing without a yes", async () => {
  const { there, plain, typing } = await place();
  const { code, out, err } = await plain("--data");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toMatch(/^Error: Nothing was deleted\. .* with 1 app \(shop\), .* Add --yes to confirm\.\n$/);
  expect(there()).toBe(true);
  const asked = await typing("n\n");
  expect(asked.out).toMatch(/with 1 app \(shop\), .* Continue\? \[y\/N\] [^]*Nothing was deleted\./);
  expect(asked.code).toBe(2);
  expect(there()).toBe(true);
});

test("and asks nothing where nothing is deleted, or where --yes has answered", async () => {
  const { there, plain } = await place();
  expect(await plain()).toMatchObject({ code: 0, err: "" });
  expect(there()).toBe(true);
  expect(await plain("--data", "--yes")).toMatchObject({
    code: 0,
    err: expect.stringMatching(/^\S+ will be deleted for good, with 1 app/),
    out: expect.stringMatching(/Deleted /),
  });
  expect(there()).toBe(false);
  expect((await plain("--data")).code, "there is nothing to ask about").toBe(0);
});

test("a yes at the terminal deletes", async () => {
  const { there, typing } = await place();
  const { code, out } = await typing("y\n");
  expect(code, out).toBe(0);
  expect(there()).toBe(false);
});
