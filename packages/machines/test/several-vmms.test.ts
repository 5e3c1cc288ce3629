/** After a restart, the platform finds processes of its machines. Nothing is ended before it is known which one is the machine's. */
import type { Vmm, VmmRef } from "@hibernaut/hypervisor";
import { expect, test } from "vitest";
import { FakeHypervisor } from "../../hypervisor/src/fake/index.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();

test("a process that poses as a machine's VMM and does not answer costs the genuine one nothing", async () => {
  const id = await shop.run();
  const nonce = shop.request(id)?.nonce;
  await shop.platform.close();
  const [genuine] = shop.host.of(id);
  if (genuine === undefined) throw new Error("there is no VMM");
  const poser = shop.host.launch(genuine.spec, genuine.identity);
  poser.held = true;
  /** The poser has the lower pid, so it is found first. */
  class PoserFirst extends FakeHypervisor {
    override async find(): Promise<VmmRef[]> {
      return (await super.find()).reverse();
    }
  }
  await shop.open({ hypervisor: new PoserFirst(shop.host) });
  expect(shop.record(id).state).toBe("running");
  expect(shop.request(id)?.nonce, "it runs on").toBe(nonce);
  expect(shop.host.of(id).map(({ ref }) => ref)).toEqual([genuine.ref]);
  shop.host.mostPerMachine = 1; // the second one was ours
});

test("a host that cannot ask a VMM ends none: the platform does not start, and the next one adopts it", async () => {
  const id = await shop.run();
  const nonce = shop.request(id)?.nonce;
  await shop.platform.close();
  class Hindered extends FakeHypervisor {
    override async adopt(): Promise<Vmm> {
      throw Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
    }
  }
  await expect(shop.open({ hypervisor: new Hindered(shop.host) })).rejects.toThrow("EMFILE");
  await shop.open();
  expect(shop.request(id)?.nonce).toBe(nonce);
});
