/** Who a machine's QEMU is, what it may take, and how the launcher is told. */
import type { NetworkAttachment } from "@hibernaut/domain/guest-network";
import fc from "fast-check";
import { expect, test } from "vitest";
import { launcherArguments } from "../../src/qemu/jail/arguments.ts";
import { cgroupFiles, resourceLimits } from "../../src/qemu/jail/limits.ts";
import { USERS, uidOf } from "../../src/qemu/jail/users.ts";

const FIRST = 1_900_000_000;
const GUEST = { gateway: "10.9.0.1", dns: "10.9.0.1", hosts: [] };
const onBridge = (address: string): NetworkAttachment => ({
  mode: "tap",
  mac: "",
  device: "tap",
  guest: { ...GUEST, address: `${address}/22` },
});
const onLoopback = (address: string): NetworkAttachment => ({
  mode: "user",
  mac: "",
  address,
  ports: [],
  guest: { ...GUEST, address: "10.0.2.15/24" },
});

test("machines with different addresses have different users, in both networks", () => {
  expect(uidOf(onBridge("10.9.0.17"), FIRST)).toBe(FIRST + 9 * 65_536 + 17);
  expect(uidOf(onLoopback("127.16.0.1"), FIRST)).toBe(FIRST + 16 * 65_536 + 1);
  const bytes = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255));
  fc.assert(
    fc.property(bytes, bytes, (one, other) => {
      const [a, b] = [one, other].map((rest) => uidOf(onBridge(`10.${rest.join(".")}`), FIRST));
      expect(a === b).toBe(one.join() === other.join());
      expect(a).toBeGreaterThanOrEqual(FIRST);
      expect(a).toBeLessThan(FIRST + USERS);
    }),
  );
});

test("a control group has room for the guest's memory, its CPUs, and QEMU", () => {
  expect(cgroupFiles({ cpus: 1, memoryMb: 256 })).toEqual({
    "memory.max": String((512 + 1280) * 1024 * 1024),
    "memory.oom.group": "1",
    "cpu.max": "150000 100000",
    "cpu.weight": "100",
    "pids.max": "256",
  });
  expect(cgroupFiles({ cpus: 16, memoryMb: 65_536 })["cpu.weight"]).toBe("1600");
});

test("limits that count for a whole user are set only where a machine has one of its own", () => {
  expect(resourceLimits(8, { ownUser: true })).toMatchObject({ core: 0, fsize: 8, nproc: 256 });
  expect(resourceLimits(8, { ownUser: false })).toEqual({ core: 0, fsize: 8 });
});

test("the launcher is told everything, and the program comes last", () => {
  const places = { read: ["/usr"], write: ["/d/memory"], devices: ["/dev/null"], links: { "/lib": "usr/lib" } };
  const plan = {
    program: "/usr/bin/qemu",
    root: "/d/run",
    uid: 7,
    groups: [107],
    ownNetwork: true,
    cgroup: "/g",
    places,
    listen: { qmp: "/d/run/q", agent: "/d/run/a" },
    tap: "tap0",
    preload: "/p/read-only.so",
    nice: 5,
    limits: { core: 0 },
  };
  expect(launcherArguments(plan).join(" ")).toBe(
    "--status 4 --root /d/run --uid 7 --group 107 --own-network --cgroup /g --nice 5 --limit core 0 --read /usr --link /lib usr/lib --write /d/memory --device /dev/null --listen 5 /d/run/q --listen 6 /d/run/a --preload /p/read-only.so --tap 7 tap0 -- /usr/bin/qemu",
  );
});
