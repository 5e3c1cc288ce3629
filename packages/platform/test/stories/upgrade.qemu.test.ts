/**
 * What an upgrade of QEMU does to machines that sleep, with two real builds.
 *
 * @module-tag again
 */
import { qemuVersion } from "@hibernaut/hypervisor/qemu/accelerator";
import { expect, test } from "vitest";
import { otherQemu } from "../../../../scripts/lib/other-qemu.mjs";
import { seriesOf } from "../../../hypervisor/src/qemu/carry-over.ts";
import { readHostCpu } from "../../../hypervisor/src/qemu/host-cpu.ts";
import { longOr } from "../helpers/long.ts";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const INSTALLED = "qemu-system-x86_64";
const OTHER = otherQemu();
const ROUNDS = longOr(10, 1);

test("the two builds differ, and are of one series", async (context) => {
  if (OTHER === undefined) return context.skip("the package sources have only the installed build of QEMU");
  const [one, other] = await Promise.all([INSTALLED, OTHER].map((program) => qemuVersion(program)));
  expect(one).not.toBe(other);
  expect(seriesOf(one ?? "")).toBe(seriesOf(other ?? "-"));
});

test("a machine sleeps, and runs, through upgrades of QEMU and back, and keeps its memory", {
  timeout: 300_000,
}, async (context) => {
  if (OTHER === undefined) return context.skip("the package sources have only the installed build of QEMU");
  const place = await Place.open({ HIBERNAUT_NETWORK: "user", HIBERNAUT_QEMU: OTHER });
  try {
    const { machine_id: id, private_address: address, state, state_reason: reason } = await place.machine();
    expect({ state, reason }).toEqual({ state: "running", reason: null });
    const first = await askUntilAnswered(address);
    let { count } = first;
    const answers = async () => {
      const answer = await askUntilAnswered(address);
      expect(answer).toMatchObject({ nonce: first.nonce, count: (count += 1) });
      expect(Math.abs(Date.parse(answer.now) - Date.now())).toBeLessThan(500);
    };
    const upgradeTo = async (qemu: string) => {
      await place.served.stop();
      await place.served.start({ HIBERNAUT_QEMU: qemu });
    };
    const wake = async () => {
      await place.start(id);
      await answers();
      expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume", reason: "snapshot" });
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      await place.suspend(id);
      await upgradeTo(INSTALLED);
      await wake();
      // This one runs through the upgrade: it is suspended by the build that started it, and resumed by the other.
      await upgradeTo(OTHER);
      await answers();
      await place.suspend(id);
      await wake();
    }
  } finally {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  }
});

test("QEMU says what guests see of a CPU, without a guest", async () => {
  const { features } = await readHostCpu(INSTALLED, "tcg");
  expect(features).toEqual(expect.arrayContaining(["fpu", "sse2", expect.stringMatching(/^family=\d+$/)]));
  expect(features).toEqual(features.toSorted());
});
