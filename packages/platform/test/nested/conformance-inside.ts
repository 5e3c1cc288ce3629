/** What real KVM has to show, as a program that runs in the outer machine: the conformance suite, and other CPUs than the host's. */
import { readBundle } from "@hibernaut/guest/bundles";
import { qemuVersion } from "@hibernaut/hypervisor/qemu/accelerator";
import { readSettings } from "@hibernaut/settings";
import { describe, expect, test } from "vitest";
import { PLAIN_CPU } from "../../../hypervisor/src/qemu/cpu-choice.ts";
import { readHostCpu } from "../../../hypervisor/src/qemu/host-cpu.ts";
import { qemuLimits } from "../../../hypervisor/src/qemu/limits.ts";
import { bootUnderKvm } from "../../../hypervisor/src/qemu/proof.ts";
import { describeHypervisor } from "../../../hypervisor/test/conformance.ts";
import { openQemu } from "../../../hypervisor/test/qemu-harness.ts";
import { BUNDLE } from "../helpers/qemu-world.ts";

/** At how many moments a capture is cancelled. Each takes seconds in there. */
const MOMENTS = 4;
const QEMU = "qemu-system-x86_64";

const settings = readSettings(process.env);
const limits = qemuLimits(settings);

async function proof(cpu: string): Promise<string> {
  const subject = { program: QEMU, version: await qemuVersion(QEMU, limits), bundle: await readBundle(BUNDLE), limits };
  return bootUnderKvm({ ...subject, cpu }, AbortSignal.timeout(settings.kvmProofTimeoutMs));
}

describe("where KVM refuses the host's CPU", () => {
  test("a guest boots with the plain one, of which it gets what the host has", async () => {
    expect(await proof(PLAIN_CPU)).toBe("");
    const { features: all } = await readHostCpu(QEMU, "kvm", { limits });
    const { cpu, features } = await readHostCpu(QEMU, "kvm", { cpu: PLAIN_CPU, limits });
    expect(cpu).toBe(PLAIN_CPU);
    const flags = features.filter((feature) => !feature.includes("="));
    expect(flags.filter((feature) => !all.includes(feature))).toEqual([]);
    expect(flags.filter((feature) => feature === "cx16" || feature === "popcnt")).toEqual(["cx16", "popcnt"]);
  });

  test("a part can be left out, which shows in what snapshots are compared by", async () => {
    const { features: all } = await readHostCpu(QEMU, "kvm", { limits });
    const { features: less } = await readHostCpu(QEMU, "kvm", { cpu: "host,-popcnt", limits });
    expect(all.filter((feature) => !less.includes(feature))).toEqual(["popcnt"]);
  });

  test("a CPU that QEMU does not know is refused at once, with QEMU's line", async () => {
    expect(/property .*no-such-part.* not found/i.test(await proof("host,no-such-part=on"))).toBe(true);
  });
});

describeHypervisor("QEMU under KVM", openQemu, { moments: MOMENTS });
