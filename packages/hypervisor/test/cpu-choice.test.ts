/** Which CPU guests see under a KVM that refuses parts of the host's. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type FailedCpu, HOST_CPU, modelOf, nextCpu, PLAIN_CPU } from "../src/qemu/cpu-choice.ts";

const refused = (register: string) => `qemu-system-x86_64: error: failed to set MSR ${register} to 0x0`;

test("a part that KVM refuses is left out, one at a time", () => {
  const failed: FailedCpu[] = [];
  expect(nextCpu(failed)).toBe("host");
  failed.push({ cpu: "host", failure: refused("0x10a") });
  expect(nextCpu(failed)).toBe("host,-arch-capabilities");
  failed.push({ cpu: "host,-arch-capabilities", failure: refused("0x38d") });
  expect(nextCpu(failed)).toBe("host,-arch-capabilities,pmu=off");
});

test.each([
  ["a register that nothing is known about", "host", refused("0x123456")],
  ["a part that is left out already", "host,-arch-capabilities", refused("0x10a")],
  ["a guest that does not get far", "host", "QEMU cannot continue the guest (internal-error): KVM internal error"],
])("after %s, a plain CPU is the last one", (_what, cpu, failure) => {
  expect(nextCpu([{ cpu, failure }])).toBe(PLAIN_CPU);
  expect(
    nextCpu([
      { cpu, failure },
      { cpu: PLAIN_CPU, failure },
    ]),
  ).toBeUndefined();
});

test("whatever QEMU says, the tries end, and none is made twice", () => {
  const registers = ["0x10a", "0xcf", "0x345", "0x38e", "0x485", "0x570", "0x6e0", "0xda0", "0xc0000104", "0xffff"];
  const failure = fc.oneof(fc.constantFrom(...registers).map(refused), fc.string());
  fc.assert(
    fc.property(fc.infiniteStream(failure), (failures) => {
      const failed: FailedCpu[] = [];
      for (let cpu = nextCpu(failed); cpu !== undefined; cpu = nextCpu(failed)) {
        failed.push({ cpu, failure: failures.next().value });
        expect(failed.length).toBeLessThan(10);
      }
      const tried = failed.map(({ cpu }) => cpu);
      expect(new Set(tried).size).toBe(tried.length);
      expect([tried[0], tried.at(-1)]).toEqual([HOST_CPU, PLAIN_CPU]);
    }),
  );
});

test("QMP is asked about the same CPU that QEMU is started with", () => {
  expect(modelOf("host,-arch-capabilities,pmu=off,+avx2,level=0xd,ucode-rev=5,vendor=X,enforce")).toEqual({
    name: "host",
    props: { "arch-capabilities": false, pmu: false, avx2: true, level: 13, "ucode-rev": 5, vendor: "X" },
  });
  expect(modelOf("kvm64")).toEqual({ name: "kvm64", props: {} });
});
