import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { lockDataDir } from "../src/lock.ts";
import { temporaryFolder } from "./helpers.ts";

const module = JSON.stringify(new URL("../src/lock.ts", import.meta.url).href);

/** Another process that takes the data directory and keeps it. */
async function holder(dataDir: string) {
  const program = `
    const { lockDataDir } = await import(${module});
    lockDataDir(${JSON.stringify(dataDir)});
    gc(); // an unreachable lock must still be held
    console.log("held");
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ["--expose-gc", "--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

const refusal = (dataDir: string) =>
  expect.objectContaining({
    code: "failed_precondition",
    message: `Another platform is using the data directory ${dataDir}. Stop it, or set HIBERNAUT_DATA_DIR to another directory.`,
  });

test("a data directory has one platform, until that releases it", () => {
  const dataDir = temporaryFolder();
  const lock = lockDataDir(dataDir);
  expect(() => lockDataDir(dataDir)).toThrow(refusal(dataDir));
  lock.release();
  lock.release();
  lockDataDir(dataDir).release();
});

test("a data directory that does not exist is made", () => {
  lockDataDir(`${temporaryFolder()}/a/b`).release();
});

test("another process is kept out, and kill -9 of the holder frees the data directory", async () => {
  const dataDir = temporaryFolder();
  const child = await holder(dataDir);
  expect(() => lockDataDir(dataDir)).toThrow(refusal(dataDir));
  child.kill("SIGKILL");
  await once(child, "exit");
  lockDataDir(dataDir).release();
});

test("a child of the holder does not keep the data directory", async () => {
  const dataDir = temporaryFolder();
  const lock = lockDataDir(dataDir);
  const child = spawn("sleep", ["30"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  lock.release();
  lockDataDir(dataDir).release();
});
