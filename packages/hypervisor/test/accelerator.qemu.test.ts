/** KVM is believed only after a guest has booted under it. */
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readBundle } from "@hibernaut/guest/bundles";
import { readSettings, type Settings } from "@hibernaut/settings";
import { describe, expect, test } from "vitest";
import { BUNDLE } from "../../platform/test/helpers/qemu-world.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { proveAccelerator, qemuVersion } from "../src/qemu/accelerator.ts";
import { PLAIN_CPU } from "../src/qemu/cpu-choice.ts";

const QEMU = "qemu-system-x86_64";
const prove = async (dataDir: string, qemu = QEMU, changes: Partial<Settings> = {}) => {
  const settings = { ...readSettings({ XDG_CONFIG_HOME: "/nowhere" }), dataDir, qemu, ...changes };
  return proveAccelerator(settings, await readBundle(BUNDLE), AbortSignal.timeout(60_000));
};
/** A shell fragment that has QEMU emulate what it was asked to run under KVM. */
const EMULATE =
  'for a; do shift; case "$a" in kvm) a=tcg ;; host|host,*|kvm64,*) a=max ;; esac; set -- "$@" "$a"; done';

/** A program that answers like QEMU, except for what `change` (a shell fragment) does. */
async function alteredQemu(folder: string, change: string): Promise<string> {
  const path = join(folder, "qemu");
  await writeFile(path, `#!/bin/sh\n[ "$1" = --version ] && exec ${QEMU} --version\n${change}\n`);
  await chmod(path, 0o755);
  return path;
}

test("this host gets a verdict with its reason, kept until something changes", async () => {
  const folder = await tempFolder("kvm");
  // Where KVM never runs a guest, each of the three proofs takes all of this.
  const brief = { kvmProofTimeoutMs: 2000 };
  const verdict = await prove(folder, QEMU, brief);
  expect(verdict.accelerator).toMatch(/^(kvm|tcg)$/);
  expect(verdict.reason.length).toBeGreaterThan(10);
  if (!existsSync("/dev/kvm")) return;
  const file = join(folder, "kvm-verdict.json");
  const kept = JSON.parse(await readFile(file, "utf8")) as { key: string };
  await writeFile(file, JSON.stringify({ ...kept, failure: "a test said so" }));
  expect(await prove(folder, QEMU, brief)).toMatchObject({
    accelerator: "tcg",
    reason: expect.stringContaining("a test said so"),
  });
  await writeFile(file, JSON.stringify({ ...kept, key: "another boot", failure: "a test said so" }));
  expect(await prove(folder, QEMU, brief)).toEqual(verdict);
  await writeFile(file, '{"key": "cut sho');
  expect(await prove(folder, QEMU, brief)).toEqual(verdict);
});

describe.runIf(existsSync("/dev/kvm"))("a KVM that cannot be trusted", () => {
  test("one that never runs a guest is given up after a deadline", { tags: "again" }, async () => {
    const folder = await tempFolder("kvm");
    // Stopped CPUs are what a KVM looks like that opens and then does nothing.
    const hung = await alteredQemu(folder, `${EMULATE}\nexec ${QEMU} "$@" -S`);
    const { accelerator, reason } = await prove(folder, hung, { kvmProofTimeoutMs: 2000 });
    expect(accelerator).toBe("tcg");
    expect(reason).toMatch(/did not boot within 2 s.*HIBERNAUT_KVM_PROOF_TIMEOUT/);
  });

  test("one that fails at once says why, and is an error where it was demanded", { tags: "again" }, async () => {
    const folder = await tempFolder("kvm");
    const broken = await alteredQemu(folder, "echo 'qemu: error: no such luck'; exit 1");
    expect((await prove(folder, broken)).reason).toMatch(/no such luck/);
    await expect(prove(folder, broken, { accelerator: "kvm" })).rejects.toMatchObject({ code: "failed_precondition" });
  });

  test("a CPU that QEMU does not know is refused with QEMU's line, not with its warnings", {
    tags: "again",
  }, async () => {
    const folder = await tempFolder("kvm");
    const emulating = await alteredQemu(folder, `echo 'qemu: warning: of little use' >&2; exec ${QEMU} "$@"`);
    const { accelerator, reason } = await prove(folder, emulating, { kvmCpu: "max,no-such-part=on" });
    expect([accelerator, reason]).toEqual(["tcg", expect.stringMatching(/no-such-part.* not found/)]);
  });

  test("one that stops in the middle is not waited for, and QEMU's own line is shown", { tags: "again" }, async () => {
    const folder = await tempFolder("kvm");
    const script = join(import.meta.dirname, "stand-in-qemu.ts");
    const stopped = await alteredQemu(folder, `exec '${process.execPath}' '${script}' "$@"`);
    const began = performance.now();
    const { accelerator, reason } = await prove(folder, stopped, { kvmProofTimeoutMs: 300_000 });
    expect(accelerator).toBe("tcg");
    expect(reason).toMatch(/internal-error.*KVM internal error\. Suberror: 1, emulation failure/);
    expect(performance.now() - began).toBeLessThan(60_000);
  });
});

describe.runIf(existsSync("/dev/kvm"))("a KVM that refuses a part of the host's CPU", () => {
  /** Refuses what KVM does that has no such register, and keeps a list of the CPUs that it was started with. */
  async function partialQemu(folder: string): Promise<{ qemu: string; tried(): Promise<string[]> }> {
    const log = join(folder, "tried");
    const refuse =
      'case "$cpu" in *-arch-capabilities*) ;; *) echo "qemu: error: failed to set MSR 0x10a to 0x0" >&2; exit 1 ;; esac';
    const read = 'before=; for a; do [ "$before" = -cpu ] && cpu=$a; before=$a; done';
    const script = [read, `echo "$cpu" >> ${log}`, refuse, EMULATE, `exec ${QEMU} "$@"`];
    const tried = async () => (await readFile(log, "utf8")).trim().split("\n");
    return { qemu: await alteredQemu(folder, script.join("\n")), tried };
  }

  test("is used without that part, which is remembered for the next boot of the host", { tags: "again" }, async () => {
    const folder = await tempFolder("kvm");
    const { qemu, tried } = await partialQemu(folder);
    const patient = { kvmProofTimeoutMs: 60_000 };
    const verdict = await prove(folder, qemu, patient);
    expect(verdict).toMatchObject({ accelerator: "kvm", cpu: "host,-arch-capabilities" });
    expect(verdict.reason).toMatch(/with the CPU host,-arch-capabilities, because with host: .*MSR 0x10a/);
    expect(await tried()).toEqual(["host", "host,-arch-capabilities"]);

    expect(await prove(folder, qemu, patient), "the same boot asks nobody").toEqual(verdict);
    const file = join(folder, "kvm-verdict.json");
    const stored = JSON.parse(await readFile(file, "utf8")) as object;
    await writeFile(file, JSON.stringify({ ...stored, key: "another boot of the host" }));
    await writeFile(qemu, (await readFile(qemu, "utf8")).replace(/^exec .*$/m, "exit 1"));
    expect(await prove(folder, qemu, patient), "KVM is gone after the reboot").toMatchObject({ accelerator: "tcg" });
    const after = (await tried()).slice(2);
    expect(after, "what worked is tried first").toEqual([
      "host,-arch-capabilities",
      "host",
      "host,-arch-capabilities",
      PLAIN_CPU,
    ]);
  });

  test("is not used with a CPU that the owner chose and it refuses", { tags: "again" }, async () => {
    const folder = await tempFolder("kvm");
    const { qemu, tried } = await partialQemu(folder);
    const { accelerator, reason } = await prove(folder, qemu, { kvmCpu: "host,-vmx" });
    expect([accelerator, reason]).toEqual(["tcg", expect.stringMatching(/MSR 0x10a/)]);
    expect(await tried()).toEqual(["host,-vmx"]);
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
