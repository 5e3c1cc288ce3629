/** "Unknown" is not "ended": a host that cannot tell whether a process is there says nothing about the machine. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { findProcesses, isAlive, killProcess, spawnDetached, watchExit } from "../../src/hypervisor/qemu/process.ts";
import { tempFolder } from "../helpers/temp.ts";

/** The error that reading a file of `/proc` ends with now, if any. */
const fault = vi.hoisted(() => ({ code: undefined as string | undefined }));
vi.mock("node:fs/promises", async (original) => {
  const fs = await original<typeof import("node:fs/promises")>();
  const failing = (path: unknown) => {
    if (fault.code === undefined || !String(path).startsWith("/proc/")) return;
    throw Object.assign(new Error(`${fault.code}: of the test`), { code: fault.code });
  };
  return {
    ...fs,
    readFile: async (...args: Parameters<typeof readFile>) => {
      failing(args[0]);
      return fs.readFile(...args);
    },
  };
});
beforeEach(() => {
  fault.code = undefined;
});

async function sleeper() {
  const log = join(await tempFolder("unknown"), "console.log");
  const { ref } = await spawnDetached("sleep", ["600"], { machineId: "0123456789abcd", log });
  onTestFinished(() => {
    fault.code = undefined;
    return killProcess(ref);
  });
  return ref;
}

test.each(["EMFILE", "ENFILE", "EIO", "EACCES", "EPERM", "ENOMEM", "EINTR", "ETIMEDOUT"])(
  "%s from the host: the machine that runs is not taken for dead",
  async (code) => {
    const ref = await sleeper();
    fault.code = code;
    await expect(isAlive(ref)).rejects.toMatchObject({ code });
    const stop = new AbortController();
    let ended = false;
    const watching = watchExit(ref, stop.signal).then(() => {
      ended = !stop.signal.aborted;
    });
    // Longer than it takes to look twice.
    await new Promise((resolve) => setTimeout(resolve, 250));
    stop.abort();
    await watching;
    expect(ended).toBe(false);
    fault.code = undefined;
    expect(await isAlive(ref)).toBe(true);
  },
);

test.each(["ENOENT", "ESRCH"])("%s from the host: the process has ended", async (code) => {
  const ref = await sleeper();
  fault.code = code;
  expect(await isAlive(ref)).toBe(false);
  await watchExit(ref, new AbortController().signal);
});

test("guests are not searched for with half an answer", async () => {
  const roots = { runRoot: "/nowhere/run", machineRoot: "/nowhere/machines" };
  fault.code = "EMFILE";
  await expect(findProcesses(roots)).rejects.toMatchObject({ code: "EMFILE" });
  // Processes of others, where the host hides them.
  fault.code = "EACCES";
  expect(await findProcesses(roots)).toEqual([]);
});
