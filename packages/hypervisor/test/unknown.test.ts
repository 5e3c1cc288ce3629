/** "Unknown" is not "ended": a host that cannot tell whether a process is there says nothing about the machine. */
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { quietFor } from "../../platform/test/helpers/quiet.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { connectToQemu } from "../src/qemu/connect.ts";
import { findProcesses } from "../src/qemu/find-processes.ts";
import { isAlive, killProcess, spawnDetached, watchExit } from "../src/qemu/process.ts";

/** The error that opening a file of `/proc`, or connecting to a socket, ends with now, if any. */
const fault = vi.hoisted(() => ({ code: undefined as string | undefined }));
vi.mock(import("node:net"), async (original) => {
  const net = await original();
  const connect = ((path: string) => {
    if (fault.code === undefined) return net.connect(path);
    const socket = new net.Socket();
    return socket.destroy(Object.assign(new Error(`connect ${fault.code}`), { code: fault.code }));
  }) as typeof net.connect;
  return { ...net, connect };
});
vi.mock(import("node:fs/promises"), async (original) => {
  const fs = await original();
  const failing = <Call extends (...args: never[]) => unknown>(call: Call): Call =>
    (async (...args: Parameters<Call>) => {
      if (fault.code !== undefined && String(args[0]).startsWith("/proc/"))
        throw Object.assign(new Error(`${fault.code}: of the test`), { code: fault.code });
      return call(...args);
    }) as unknown as Call;
  return { ...fs, readFile: failing(fs.readFile), open: failing(fs.open) };
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
    const watching = watchExit(ref, stop.signal);
    // Longer than it takes to look twice.
    expect(await Promise.race([watching.then(() => "ended"), quietFor(250)])).toBeUndefined();
    stop.abort();
    await watching;
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

test("with no descriptor left, the end of a machine is still noticed, and it can be killed", async () => {
  const ref = await sleeper();
  const held = () => readdirSync("/proc/self/fd").filter((fd) => target(fd) === `/proc/${ref.pid}/stat`).length;
  const watching = watchExit(ref, new AbortController().signal);
  await expect.poll(held).toBe(1);
  fault.code = "EMFILE";
  await expect.poll(() => isAlive(ref).catch(() => "unknown")).toBe(true);
  await killProcess(ref);
  await watching;
  expect(held(), "one descriptor for each machine that runs, and none for one that does not").toBe(0);
});

test("a QEMU that nobody can connect to is not one that does not listen", async () => {
  const path = join(await tempFolder("unknown"), "qmp.sock");
  fault.code = "EMFILE";
  await expect(connectToQemu(path, AbortSignal.timeout(50))).rejects.toMatchObject({ code: "EMFILE" });
  fault.code = undefined;
  await expect(connectToQemu(path, AbortSignal.timeout(50))).rejects.toMatchObject({ name: "TimeoutError" });
});

/** Where a descriptor leads; it may be closed while they are listed. */
function target(fd: string): string {
  const link = `/proc/self/fd/${fd}`;
  return existsSync(link) ? readlinkSync(link) : "";
}
