/** A hostile guest, against the platform's side of its channel. The long test sends a hundred times as much. */
import { expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { attack, behave, heapBytes, socketPair, Target } from "./attack.ts";
import { FRAMES, GROWTH_BYTES, LIMIT_MS, SEED } from "./size.ts";

test(
  `${FRAMES} frames of a hostile guest (seed ${SEED}): nothing crashes or grows, and another machine is unharmed`,
  async () => {
    const folder = await tempFolder("hostile");
    const [target, other] = [new Target(folder, "hostile"), new Target(folder, "other")];
    const [[ours, guest], [othersOurs, othersGuest]] = await Promise.all([
      socketPair(folder, "hostile"),
      socketPair(folder, "other"),
    ]);
    behave(othersGuest);
    await target.attach(ours);
    await other.attach(othersOurs);
    const heaps: number[] = [];
    const pinged = async () => {
      const answer = await other.guest.live?.agent.ping(AbortSignal.timeout(10_000), Buffer.from("there?"));
      expect(answer?.toString()).toBe("there?");
    };
    await attack(target, guest, {
      seed: SEED,
      frames: FRAMES,
      async at() {
        await pinged();
        heaps.push(heapBytes());
      },
    });
    expect(heaps).toHaveLength(10);
    // The first tenth fills what has a limit; after that, nothing grows.
    const [settled = 0, last = 0] = [heaps[1], heaps.at(-1)];
    expect(last - settled, `bytes of the heap after each tenth: ${heaps.join(" ")}`).toBeLessThan(GROWTH_BYTES);
    expect(target.warned, "what a guest says is not repeated in the log without a limit").toBeLessThan(1000);
    await target.close();
    await vi.waitFor(() => expect(target.inside.streams.open).toBe(0));
    await pinged();
    await other.close();
    guest.destroy();
    othersGuest.destroy();
  },
  LIMIT_MS,
);
