/** A hostile guest in a whole platform: its machine may suffer, and no other does. */
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Vmm, VmmSpec } from "@hibernaut/hypervisor";
import { expect, test } from "vitest";
import { FakeHypervisor } from "../../../hypervisor/src/fake/index.ts";
import { shopForEach } from "../../../machines/test/shop.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { FrameType } from "../../src/frame.ts";
import { socketPair } from "./attack.ts";
import { HostileGuest } from "./generator.ts";
import { SEED } from "./size.ts";

const BATCHES = 60;
const BATCH = 200;

/** The channel of one machine is a real socket, at whose other end the test sits next to the guest. */
class TappedHypervisor extends FakeHypervisor {
  readonly ends: Socket[] = [];
  tapped = "";
  folder = "";

  override async boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm> {
    const vmm = await super.boot(spec, signal);
    if (spec.machineId !== this.tapped) return vmm;
    const open = vmm.openChannel.bind(vmm);
    vmm.openChannel = async (limit) => {
      const [guest, [platform, end]] = await Promise.all([open(limit), socketPair(this.folder, `${this.ends.length}`)]);
      guest.on("data", (chunk) => end.write(chunk));
      end.on("data", (chunk) => guest.write(chunk));
      guest.on("close", () => end.destroy());
      end.on("close", () => guest.destroy());
      this.ends.push(end);
      return platform;
    };
    return vmm;
  }
}

const shop = shopForEach();

test(`its frames (seed ${SEED}) neither end the platform nor reach another machine, and its machine can be stopped`, async () => {
  const hypervisor = new TappedHypervisor(shop.host);
  hypervisor.folder = await tempFolder("hostile");
  const api = createServer((request, response) => response.end("{}") && request.resume());
  await shop.restart({
    hypervisor,
    wrap: (deps) => ({ ...deps, onLocalConnection: (_id, connection) => void api.emit("connection", connection) }),
  });
  const { commands } = shop.platform;
  const [hostile, other] = [await shop.create(), await shop.create()];
  hypervisor.tapped = hostile;
  await Promise.all([hostile, other].map((id) => shop.start(id)));

  const guest = new HostileGuest(SEED);
  const attack = async (without: ReadonlySet<number>) => {
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const end = hypervisor.ends.at(-1);
      const bytes = Buffer.concat(Array.from({ length: BATCH }, () => guest.next(without)));
      if (end?.writable) await new Promise<void>((resolve) => end.write(bytes, () => resolve()));
      if (shop.record(hostile).state === "running")
        commands.run("shop", hostile, { args: ["cat"] }).exit.catch(() => {});
      await otherWorks();
    }
  };
  let asked = 0;
  const otherWorks = async () => {
    asked += 1;
    expect(shop.request(other)?.count).toBe(asked);
    const command = commands.run("shop", other, { args: ["cat"], input: true });
    command.stdin.end("still here");
    expect(await text(command.stdout)).toBe("still here");
  };
  await attack(new Set([FrameType.exit]));
  expect(shop.record(hostile).state).toBe("running");

  // Now it also says that its app has ended, again and again: the restart policy begins.
  await attack(new Set());
  await shop.suspend(other);
  await shop.start(other);
  await otherWorks();

  await shop.stop(hostile);
  shop.machines.destroy("shop", hostile);
  await shop.reach(hostile, "destroyed");
  expect(shop.logged().filter((message) => /failed unexpectedly/.test(message))).toEqual([]);
}, 120_000);
