/**
 * `npm run up` where the platform cannot start: a newcomer's second try, or a second user of the host. No machine is made.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { lockDataDir } from "@hibernaut/store/lock";
import { expect, onTestFinished, test } from "vitest";
import { ownPlatform } from "../helpers/platform-process.ts";
import { tempFolder } from "../helpers/temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");

/** Runs the real script on a data directory until it ends, without trying KVM or creating a bridge. */
function up(dataDir: string, env: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }> {
  const environment = {
    ...process.env,
    ...ownPlatform(dataDir),
    HIBERNAUT_ACCELERATOR: "tcg",
    HIBERNAUT_NETWORK: "user",
    ...env,
  };
  return new Promise((resolve) => {
    const options = { cwd: ROOT, env: environment };
    execFile("npm", ["run", "--silent", "up", "--", "--exit"], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

/** A port of the host that another program has. */
async function takenPort(): Promise<string> {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  return `127.0.0.1:${(other.address() as AddressInfo).port}`;
}

/** The lines after the step that failed. */
function complaint(stderr: string): string[] {
  const lines = stderr.trim().split("\n");
  const failed = lines.findIndex((line) => line.startsWith("failed after"));
  expect(failed, stderr).toBeGreaterThan(0);
  return lines.slice(failed + 1);
}

test.each([
  ["API", "HIBERNAUT_API_LISTEN"],
  ["proxy", "HIBERNAUT_PROXY_LISTEN"],
])("the port of the %s is taken: it says which one, and what to set", async (what, setting) => {
  const host = await takenPort();
  const { code, stdout, stderr } = await up(await tempFolder(), { [setting]: host });
  expect(complaint(stderr)).toEqual([
    `The ${what} cannot listen on ${host}: another program is listening there. Set ${setting} to another host:port.`,
  ]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
});

test("another platform is using the data directory: up says so and names the directory", async () => {
  const folder = await tempFolder();
  const other = lockDataDir(folder);
  onTestFinished(() => other.release());
  const { code, stdout, stderr } = await up(folder, {});
  expect(complaint(stderr)).toEqual([
    `Another platform is using the data directory ${folder}. Stop it, or set HIBERNAUT_DATA_DIR to another directory.`,
  ]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
});
