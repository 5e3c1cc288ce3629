/** After a restart, the platform finds processes of its machines. Nothing is ended before it is known which one is the machine's. */
import type { Vmm, VmmRef } from "@hibernaut/hypervisor";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";

let world: World;
let platform: FakePlatform;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

test("a process that poses as a machine's VMM and does not answer costs the genuine one nothing", async () => {
  const id = await runningMachine(platform);
  const nonce = world.host.guest(id)?.request()?.nonce;
  await platform.close();
  const [genuine] = world.host.of(id);
  if (genuine === undefined) throw new Error("there is no VMM");
  const poser = world.host.launch(genuine.spec, genuine.identity);
  poser.held = true;
  /** The poser has the lower pid, so it is found first. */
  class PoserFirst extends FakeHypervisor {
    override async find(): Promise<VmmRef[]> {
      return (await super.find()).reverse();
    }
  }
  platform = await startPlatform(world, { hypervisor: new PoserFirst(world.host) });
  expect(platform.machines.get("shop", id).record.state).toBe("running");
  expect(world.host.guest(id)?.request()?.nonce, "it runs on").toBe(nonce);
  expect(world.host.of(id).map(({ ref }) => ref)).toEqual([genuine.ref]);
});

test("a host that cannot ask a VMM ends none: the platform does not start, and the next one adopts it", async () => {
  const id = await runningMachine(platform);
  const nonce = world.host.guest(id)?.request()?.nonce;
  await platform.close();
  class Hindered extends FakeHypervisor {
    override async adopt(): Promise<Vmm> {
      throw Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
    }
  }
  await expect(startPlatform(world, { hypervisor: new Hindered(world.host) })).rejects.toThrow("EMFILE");
  platform = await startPlatform(world);
  expect(world.host.guest(id)?.request()?.nonce).toBe(nonce);
});
