/** Which QEMU may resume what another one suspended. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { HypervisorIdentity } from "../src/contract.ts";
import { cpuIn, qemuArguments } from "../src/qemu/arguments.ts";
import { refusedCarryOver, seriesOf } from "../src/qemu/carry-over.ts";
import { FailedCarryOvers } from "../src/qemu/failed-carry-overs.ts";
import { hardwareOf, hardwareOfType, identityOf, PRESENT_HARDWARE } from "../src/qemu/hardware.ts";
import { featuresOf } from "../src/qemu/host-cpu.ts";

const OLD = "7.2.18 (Debian 1:7.2+dfsg-7+deb12u15)";
const NEW = "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)";
const NEXT = "10.0.2 (Debian 1:10.0.2+ds-2+deb13u1)";
const HOST = { name: "AMD EPYC", cpu: "host", features: ["avx2", "family=25", "fpu"] };
const SERIES = { accept: "series", failed: [] } as const;

const EMPTY = { bundle: {}, volumes: [], memory: "", image: "", layer: "", consoleLog: "", runDir: "" };

const tcg = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
const kvm = (version: string, host = HOST) => identityOf({ version, accelerator: "kvm", host }, PRESENT_HARDWARE);
/** As 0.1 recorded it. */
const first = (version: string, accelerator: "kvm" | "tcg" = "tcg"): HypervisorIdentity => ({
  hypervisor: "qemu",
  version,
  accelerator,
  cpu_model: accelerator === "kvm" ? "host (AMD EPYC)" : "max",
  machine_type: "q35 (devices 1)",
});

describe("another build of QEMU resumes a snapshot", () => {
  test("of the same series, whichever of the two is newer", () => {
    expect(refusedCarryOver(tcg(OLD), tcg(NEW), SERIES)).toBeUndefined();
    expect(refusedCarryOver(tcg(NEW), tcg(OLD), SERIES)).toBeUndefined();
    expect(refusedCarryOver(kvm(OLD), kvm(NEW), SERIES)).toBeUndefined();
  });

  test("but not of another series", () => {
    expect(refusedCarryOver(tcg(NEW), tcg(NEXT), SERIES)).toBe(
      `hypervisor_version_changed: hypervisor version was ${NEW}, is ${NEXT} (another series of QEMU)`,
    );
  });

  test("nor of one that cannot be told", () => {
    for (const odd of ["7.2", "unknown", ""]) expect(refusedCarryOver(tcg(odd), tcg(NEW), SERIES)).toMatch(/another/);
    expect([NEW, NEXT, "7.2.0", "7.2", "v7.2.1"].map(seriesOf)).toEqual(["7.2", "10.0", "7.2", undefined, undefined]);
  });

  test("nor where the setting asks for the exact one", () => {
    expect(refusedCarryOver(tcg(OLD), tcg(NEW), { ...SERIES, accept: "exact" })).toMatch(
      /HIBERNAUT_SNAPSHOT_QEMU is exact/,
    );
    expect(refusedCarryOver(tcg(OLD), tcg(OLD), { ...SERIES, accept: "exact" })).toBeUndefined();
  });

  test("nor once a resume in it has failed, until QEMU is upgraded again", () => {
    const failed = [{ from: "7.2.17", to: NEW }];
    expect(refusedCarryOver(tcg(OLD), tcg(NEW), { ...SERIES, failed })).toMatch(
      /could not resume a snapshot of 7\.2\.17/,
    );
    expect(refusedCarryOver(tcg(NEW), tcg(NEW), { ...SERIES, failed })).toBeUndefined();
    expect(refusedCarryOver(tcg(OLD), tcg("7.2.23"), { ...SERIES, failed })).toBeUndefined();
  });
});

describe("a snapshot of version 0.1", () => {
  test("is resumed by the build that took it, and by no other", () => {
    for (const accelerator of ["tcg", "kvm"] as const) {
      const now = accelerator === "tcg" ? tcg : kvm;
      expect(refusedCarryOver(first(OLD, accelerator), now(OLD), SERIES)).toBeUndefined();
      expect(refusedCarryOver(first(OLD, accelerator), now(NEW), SERIES)).toMatch(
        /^hypervisor_version_changed: .* 0\.1/,
      );
    }
    expect(refusedCarryOver(first(OLD, "kvm"), kvm(OLD, { ...HOST, name: "Other" }), SERIES)).toMatch(/^cpu_model_ch/);
    expect(refusedCarryOver(first(OLD, "kvm"), tcg(OLD), SERIES)).toMatch(/^accelerator_changed/);
  });

  test("is loaded on the hardware that it was taken on", () => {
    const spec = { ...EMPTY, network: { mode: "tap" } };
    const taken = hardwareOf(first(OLD)) ?? PRESENT_HARDWARE;
    const words = (hardware: typeof taken) =>
      qemuArguments(spec as never, { accelerator: "tcg", hardware, incoming: true }).join(" ");
    expect(words(taken)).toMatch(/-machine q35,.* -accel tcg -cpu max /);
    expect(words(PRESENT_HARDWARE)).toMatch(/-machine pc-q35-7\.2,.* -accel tcg -cpu Haswell-v2,/);
    expect(hardwareOfType("q35")).toBe(taken);
  });
});

describe("under KVM", () => {
  test("a host whose CPU has less, or more, or is another one, is refused with the difference", () => {
    const other = { ...HOST, features: ["avx512f", "family=25", "fpu"] };
    expect(refusedCarryOver(kvm(OLD), kvm(OLD, other), SERIES)).toBe(
      "cpu_model_changed: the host's CPU differs: -avx2 +avx512f",
    );
    expect(refusedCarryOver(kvm(OLD), kvm(OLD, { ...HOST, name: "Intel" }), SERIES)).toMatch(
      /^cpu_model_changed: CPU m/,
    );
  });

  test("a snapshot is resumed with the CPU that it was taken with, and with no other", () => {
    const less = { ...HOST, cpu: "host,-arch-capabilities" };
    expect(refusedCarryOver(kvm(OLD, less), kvm(NEW, less), SERIES)).toBeUndefined();
    for (const [was, now] of [
      [HOST, less],
      [less, HOST],
    ] as const)
      expect(refusedCarryOver(kvm(OLD, was), kvm(OLD, now), SERIES)).toBe(
        `cpu_model_changed: CPU model was ${was.cpu} (AMD EPYC), is ${now.cpu} (AMD EPYC)`,
      );
    const words = qemuArguments({ ...EMPTY, network: { mode: "tap" } } as never, {
      accelerator: "kvm",
      hardware: PRESENT_HARDWARE,
      kvmCpu: less.cpu,
      incoming: true,
    });
    expect(cpuIn(words), "the next platform finds it in what QEMU was started with").toBe(less.cpu);
  });

  test("a snapshot taken under emulation is refused, and the other way round", () => {
    expect(refusedCarryOver(tcg(OLD), kvm(OLD), SERIES)).toBe("accelerator_changed: accelerator was tcg, is kvm");
    expect(refusedCarryOver(kvm(OLD), tcg(OLD), SERIES)).toBe("accelerator_changed: accelerator was kvm, is tcg");
  });

  test("a snapshot that does not say what the CPU had fits its own build only", () => {
    const { cpu_features: _unknown, ...was } = kvm(OLD);
    expect(refusedCarryOver(was, kvm(OLD), SERIES)).toBeUndefined();
    expect(refusedCarryOver(was, kvm(NEW), SERIES)).toMatch(/^hypervisor_version_changed/);
  });

  test("what QEMU says about the CPU becomes a list of what guests can see", () => {
    const said = {
      avx2: true,
      "kvm-pv-eoi": true,
      kvm_pv_eoi: true,
      la57: false,
      family: 25,
      vendor: "X",
      "core-id": -1,
    };
    expect(featuresOf(said)).toEqual(["avx2", "family=25", "kvm-pv-eoi", "vendor=X"]);
  });
});

test("whatever is recorded, the same QEMU resumes it, and no other hypervisor, accelerator or unknown hardware does", () => {
  const word = fc.constantFrom("qemu", "fake", "7.2.1", "7.2.2", "8.0.0", "max", "host (X)", "q35 (devices 1)", "none");
  const identity: fc.Arbitrary<HypervisorIdentity> = fc.record({
    hypervisor: word,
    version: word,
    accelerator: fc.constantFrom("kvm" as const, "tcg" as const, "fake" as const),
    cpu_model: word,
    machine_type: fc.constantFrom("q35 (devices 1)", "pc-q35-7.2 (devices 1)", "q35 (devices 9)", "none"),
  });
  fc.assert(
    fc.property(identity, identity, (was, now) => {
      expect(refusedCarryOver(was, was, SERIES)).toBeUndefined();
      const refused = refusedCarryOver(was, now, SERIES);
      if (was.hypervisor !== now.hypervisor || was.accelerator !== now.accelerator)
        expect(refused).toMatch(/^\w+_changed: /);
      if (hardwareOf(was) === undefined && was.machine_type !== now.machine_type) expect(refused).toBeDefined();
      if (hardwareOf(was)?.versioned === false && was.version !== now.version) expect(refused).toBeDefined();
    }),
    { numRuns: 2000 },
  );
});

describe("what has failed", () => {
  test("is known to the next platform, once, and a damaged file counts as empty", async () => {
    const folder = await tempFolder("carry-overs");
    const pairs = await FailedCarryOvers.open(folder);
    expect(pairs.all).toEqual([]);
    for (let times = 0; times < 2; times += 1) await pairs.failed({ from: OLD, to: NEW });
    expect((await FailedCarryOvers.open(folder)).all).toEqual([{ from: OLD, to: NEW }]);
    for (let micro = 0; micro < 30; micro += 1) await pairs.failed({ from: OLD, to: `7.2.${micro}` });
    expect(pairs.all).toHaveLength(20);
    const file = join(folder, "failed-carry-overs.json");
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual(pairs.all);
    for (const text of ["{", "{}", "[1, null]"]) {
      await writeFile(file, text);
      expect((await FailedCarryOvers.open(folder)).all).toEqual([]);
    }
  });

  test("counts for the running platform even if it cannot be written", async () => {
    const folder = await tempFolder("carry-overs");
    const pairs = await FailedCarryOvers.open(join(folder, "missing"));
    await expect(pairs.failed({ from: OLD, to: NEW })).rejects.toThrow(/ENOENT/);
    expect(pairs.all).toEqual([{ from: OLD, to: NEW }]);
  });
});
