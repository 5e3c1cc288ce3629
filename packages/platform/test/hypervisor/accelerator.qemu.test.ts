/** KVM is believed only after a guest has booted under it. */
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readBundle } from "../../src/guest/bundles.ts";
import { proveAccelerator, qemuVersion } from "../../src/hypervisor/qemu/accelerator.ts";
import { tempFolder } from "../helpers/temp.ts";
import { BUNDLE } from "../helpers/qemu-world.ts";

const QEMU = "qemu-system-x86_64";
const prove = async (dataDir: string, qemu = QEMU, accelerator: "auto" | "kvm" | "tcg" = "auto") =>
  proveAccelerator({ accelerator, qemu, dataDir }, await readBundle(BUNDLE), AbortSignal.timeout(60_000));

/** A program that answers like QEMU, except for what `change` (a shell fragment) does. */
async function alteredQemu(folder: string, change: string): Promise<string> {
  const path = join(folder, "qemu");
  await writeFile(path, `#!/bin/sh\n[ "$1" = --version ] && exec ${QEMU} --version\n${change}\n`);
  await chmod(path, 0o755);
  return path;
}

test("this host gets a verdict with its reason, kept until something changes", async () => {
  const folder = await tempFolder("kvm");
  const verdict = await prove(folder);
  expect(verdict.accelerator).toMatch(/^(kvm|tcg)$/);
  expect(verdict.reason.length).toBeGreaterThan(10);
  if (!existsSync("/dev/kvm")) return;
  const file = join(folder, "kvm-verdict.json");
  const kept = JSON.parse(await readFile(file, "utf8")) as { key: string };
  await writeFile(file, JSON.stringify({ ...kept, failure: "a test said so" }));
  expect(await prove(folder)).toMatchObject({ accelerator: "tcg", reason: expect.stringContaining("a test said so") });
  await writeFile(file, JSON.stringify({ key: "another boot", failure: "a test said so" }));
  expect(await prove(folder)).toEqual(verdict);
  await writeFile(file, '{"key": "cut sho');
  expect(await prove(folder)).toEqual(verdict);
});

describe.runIf(existsSync("/dev/kvm"))("a KVM that cannot be trusted", () => {
  test("one that never runs a guest is given up after a deadline", async () => {
    const folder = await tempFolder("kvm");
    // Stopped CPUs are what a KVM looks like that opens and then does nothing.
    const tcg = 'for a; do shift; case "$a" in kvm) a=tcg ;; host) a=max ;; esac; set -- "$@" "$a"; done';
    const hung = await alteredQemu(folder, `${tcg}\nexec ${QEMU} "$@" -S`);
    const verdict = await prove(folder, hung);
    expect(verdict).toMatchObject({ accelerator: "tcg", reason: expect.stringMatching(/did not boot within 8 s/) });
  });

  test("one that fails at once says why, and is an error where it was demanded", async () => {
    const folder = await tempFolder("kvm");
    const broken = await alteredQemu(folder, "echo 'qemu: error: no such luck'; exit 1");
    expect((await prove(folder, broken)).reason).toMatch(/no such luck/);
    await expect(prove(folder, broken, "kvm")).rejects.toMatchObject({ code: "failed_precondition" });
  });
});

test("a QEMU that is missing or too old is told with what to do", async () => {
  await expect(qemuVersion("/no/such/qemu")).rejects.toThrow(/apt-get install/);
  const folder = await tempFolder("kvm");
  const old = join(folder, "old");
  await writeFile(old, "#!/bin/sh\necho 'QEMU emulator version 6.2.0 (Debian)'\n");
  await chmod(old, 0o755);
  await expect(qemuVersion(old)).rejects.toThrow(/6\.2\.0 \(Debian\) is too old; it must be 7\.2 or newer/);
});
