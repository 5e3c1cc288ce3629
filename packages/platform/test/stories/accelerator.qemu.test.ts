/** A host that loses KVM, or gets it: no guest is resumed on what it was not suspended on. Needs both. */
import { expect, onTestFinished, test } from "vitest";
import { ACCELERATOR, askUntilAnswered } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";

const BOTH_WAYS = [
  ["kvm", "tcg"],
  ["tcg", "kvm"],
] as const;

test.skipIf(ACCELERATOR !== "kvm")(
  "a snapshot taken under KVM is refused under emulation, and the other way round: the start is cold, with the reason",
  { timeout: 600_000 },
  async () => {
    const place = await Place.open(WARM);
    onTestFinished(async () => expect(await place.close()).toEqual(NOTHING_LEFT));
    const { machine_id: id, private_address: address } = await place.machine({ guest: { memory_mb: 128 } });
    for (const [from, to] of BOTH_WAYS) {
      const before = await askUntilAnswered(address);
      await place.suspend(id);
      await place.served.stop();
      await expect(place.served.start({ HIBERNAUT_ACCELERATOR: to })).rejects.toThrow(
        /^This start would cost 1 sleeping machine its memory\. .*`hibernaut serve --drop-snapshots`\.$/,
      );
      if (from === "kvm") {
        // Nothing was lost by asking.
        await place.served.start({ HIBERNAUT_ACCELERATOR: from });
        await place.start(id);
        expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
        await place.suspend(id);
        await place.served.stop();
      }
      await place.served.start({ HIBERNAUT_ACCELERATOR: to }, ["--drop-snapshots"]);
      await place.start(id);
      expect((await askUntilAnswered(address)).nonce).not.toBe(before.nonce);
      expect((await place.get(id)).last_boot).toMatchObject({
        kind: "cold",
        reason: `accelerator_changed: accelerator was ${from}, is ${to}`,
      });
    }
  },
);
