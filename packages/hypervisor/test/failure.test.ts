/** A guest that QEMU cannot continue. Emulation has none, so a stand-in reports what QEMU reports under KVM. */
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { lastLine, meansTaken, readTail, tellingLine } from "../src/qemu/failure.ts";
import { identityOf, PRESENT_HARDWARE } from "../src/qemu/hardware.ts";
import { isAlive, killProcess, spawnDetached } from "../src/qemu/process.ts";
import { Qmp } from "../src/qemu/qmp.ts";
import { QemuVmm } from "../src/qemu/vmm.ts";
import { standInQmp } from "./stand-in-qmp.ts";

/** What QEMU 7.2 printed when KVM met an instruction that it could not emulate. */
const INTERNAL_ERROR = `KVM internal error. Suberror: 1
emulation failure
RAX=0000000000000000 RBX=ffff888003c1a000 RCX=0000000000000000 RDX=0000000000000001
Code=48 8b 5d f8 c9 c3 <65> 48 0f c7 0e
`;

/** A VMM whose QEMU is a program that only waits, with the answers of a stand-in. */
async function standIn(status: string) {
  const runDir = await tempFolder("failure");
  const console = join(runDir, "console.log");
  const earlier = "Kernel panic - not syncing: an earlier boot\n";
  await writeFile(console, earlier);
  const answers = { "query-status": { status } };
  const path = join(runDir, "qmp.sock");
  const stub = await standInQmp(path, answers);
  const { ref } = await spawnDetached("sleep", ["600"], { machineId: "0".repeat(14), log: console });
  onTestFinished(async () => {
    await killProcess(ref);
    await stub[Symbol.asyncDispose]();
  });
  const qmp = await Qmp.connect(path, AbortSignal.timeout(10_000));
  const identity = identityOf({ version: qmp.version, accelerator: "kvm" }, PRESENT_HARDWARE);
  const files = { runDir, memory: join(runDir, "memory"), console, consoleBefore: earlier.length };
  return { vmm: new QemuVmm(ref, identity, qmp, files), ref, console, stub, answers };
}

describe("a guest that QEMU cannot continue", () => {
  test("ends, and QEMU's own words say why", async () => {
    const { vmm, ref, console, stub, answers } = await standIn("running");
    await appendFile(console, INTERNAL_ERROR);
    answers["query-status"].status = "internal-error";
    stub.event("STOP");
    await vmm.exited;
    expect(await isAlive(ref)).toBe(false);
    expect(vmm.failure).toBe(
      "QEMU cannot continue the guest (internal-error): KVM internal error. Suberror: 1, emulation failure",
    );
  });

  test("ends even if that happened before anyone was there to see it", async () => {
    const { vmm, ref } = await standIn("internal-error");
    await vmm.exited;
    expect(await isAlive(ref)).toBe(false);
    expect(vmm.failure, "the words of an earlier boot explain nothing").toBe(
      "QEMU cannot continue the guest (internal-error)",
    );
  });
});

test.each([
  ["/usr/bin/qemu cannot be run in its jail: opening the tap hbt0a1b2c3: Device or resource busy. Run it.", true],
  ["could not configure /dev/net/tun (hbt0a1b2c3): Device or resource busy", true],
  ['drive=layer: Failed to get "write" lock', true],
  ["Could not set up host forwarding rule 'tcp:127.7.0.2:8080-:8080'", true],
  ["initrd is too large", false],
  ["opening the tap hbt0a1b2c3: Operation not permitted", false],
])("%j: another process has what is the machine's: %j", (message, taken) => {
  expect(meansTaken(message)).toBe(taken);
});

test("a guest whose kernel crashed is told from one that was killed", async () => {
  const { vmm, ref, console, stub } = await standIn("running");
  await appendFile(console, "[    2.1] Kernel panic - not syncing: Attempted to kill init!\n");
  stub.event("SHUTDOWN", { guest: true, reason: "guest-reset" });
  await vmm.exited;
  expect(vmm.failure).toMatch(/kernel has crashed, or rebooted: .*Attempted to kill init!$/);

  const other = await standIn("running");
  await killProcess(other.ref);
  await other.vmm.exited;
  expect(other.vmm.failure).toBeUndefined();
  expect(await isAlive(ref)).toBe(false);
});

test("a guest that is paused, waits for its disk, or powers itself off is left alone", async () => {
  for (const status of ["paused", "io-error", "postmigrate", "inmigrate"]) {
    const { vmm, ref, stub } = await standIn(status);
    stub.event("STOP");
    stub.event("SHUTDOWN", { guest: true, reason: "guest-shutdown" });
    // The answer to a command comes after what the events before it led to.
    expect(await vmm.state()).toBe("paused");
    expect(vmm.failure).toBeUndefined();
    expect(await isAlive(ref)).toBe(true);
  }
});

test.each([
  [INTERNAL_ERROR, "KVM internal error. Suberror: 1, emulation failure"],
  ["KVM internal error. Suberror: 3\nRAX=0", "KVM internal error. Suberror: 3"],
  ["KVM: entry failed, hardware error 0x80000021\nRAX=0", "KVM: entry failed, hardware error 0x80000021"],
  ["error: kvm run failed Bad address\nRAX=0", "error: kvm run failed Bad address"],
  ["[1] Kernel panic - not syncing: one\n[2] Kernel panic - not syncing: two\n", "[2] Kernel panic - not syncing: two"],
  ["a quiet guest\n", undefined],
  ["", undefined],
])("of %j the line %j tells most", (text, line) => {
  expect(tellingLine(text)).toBe(line);
});

test("only the end of a log is read, and a log that is missing is empty", async () => {
  const path = join(await tempFolder("failure"), "log");
  expect(await readTail(path)).toBe("");
  await writeFile(path, `${"x".repeat(100_000)}end`);
  expect(await readTail(path, 100_000)).toBe("end");
  expect(await readTail(path, 200_000), "a log that was cut").toHaveLength(65_536);
  expect(await readTail(path)).toHaveLength(65_536);
});

test("the last words of a QEMU that ended", () => {
  expect(lastLine("warning: slow\nCould not access KVM kernel module: Permission denied\n\n")).toBe(
    "Could not access KVM kernel module: Permission denied",
  );
  expect(lastLine(" \n")).toBeUndefined();
});
