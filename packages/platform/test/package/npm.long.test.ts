/** The npm package of the program. Long, because packing the guest's kernel takes seconds of CPU. */
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { oldNode } from "../../../../scripts/lib/test-nodes.mjs";
import { userOf } from "./npm-user.ts";

const run = promisify(execFile);

test("the program works with the Node of the PATH, and says which one it needs", { timeout: 120_000 }, async () => {
  const folder = await userOf("hibernaut", ["better-sqlite3"]);
  const program = join(folder, "node_modules/hibernaut/packages/cli/bin/hibernaut");
  const hibernaut = (node: string, ...args: string[]) => {
    const env = { PATH: `${dirname(node)}:/usr/sbin:/usr/bin:/sbin:/bin`, HIBERNAUT_DATA_DIR: folder, HOME: folder };
    return run(program, args, { env }).catch((error: { stdout: string; stderr: string }) => error);
  };
  const { stdout } = await hibernaut(process.execPath, "doctor", "--json");
  expect(stdout).toMatch(/"guest bundle",\s+"status": "ok"/);
  const { stderr } = await hibernaut(oldNode("20"), "ps");
  expect(stderr).toMatch(/^Error: Hibernaut needs Node 24\.18 or later, and this is v20\..*\. Install it/);
});
