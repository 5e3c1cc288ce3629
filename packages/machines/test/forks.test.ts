/** Forks and templates on a fake host: who is born, what is refused, and what a platform that dies leaves. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { SnapshotStore } from "@hibernaut/snapshots";
import { describe, expect, test } from "vitest";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import type { MachineDependencies } from "../src/dependencies.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const never = new AbortController().signal;
const fork = (id: string, more: Partial<Parameters<typeof shop.platform.forks.fork>[2]> = {}) =>
  shop.platform.forks.fork("shop", id, { count: 1, ...more }, never);
/** What lies in the directory of templates. */
const seeds = () => {
  const folder = join(shop.world.folder, "templates");
  return existsSync(folder)
    ? readdirSync(folder).filter((name) => name !== "births" || readdirSync(join(folder, name)).length > 0)
    : [];
};

/** A machine that has answered twice. */
async function busy(): Promise<string> {
  const id = await shop.run();
  shop.host.guest(id)?.request();
  shop.host.guest(id)?.request();
  return id;
}

test("a fork of a running machine begins where that is, as itself, and both continue apart", async () => {
  const id = await busy();
  const { address, config } = shop.record(id);
  const [born] = await fork(id, { env: { BRANCH: "b" } });
  const child = born?.record.id ?? "";
  await shop.reach(child, "running");
  expect(shop.record(child)).toMatchObject({ lastBoot: { kind: "resume" }, newborn: false, origin: { machine: id } });
  expect(shop.record(child).address).not.toBe(address);
  expect(shop.record(child).config.env).toEqual({ ...config.env, BRANCH: "b" });
  expect(shop.host.guest(child)?.state.hostname).toBe(child);
  const { nonce = "" } = shop.host.guest(id)?.request() ?? {};
  expect(shop.host.guest(child)?.request()).toEqual({ nonce, count: 3 });
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 4 });
  expect(seeds()).toEqual([]);
});

test("all forks of one call have the same moment, also of a machine that sleeps, which sleeps on", async () => {
  const id = await busy();
  await shop.suspend(id);
  const before = shop.record(id);
  const born = await fork(id, { count: 5, name: "branch" });
  expect(born.map(({ record }) => record.name)).toEqual([1, 2, 3, 4, 5].map((index) => `branch-${index}`));
  for (const { record } of born) {
    await shop.reach(record.id, "running");
    expect(shop.host.guest(record.id)?.request()?.count).toBe(3);
  }
  expect(shop.record(id)).toEqual(before);
  await shop.start(id);
  expect(shop.host.guest(id)?.request()?.count).toBe(3);
});

test("machines from a template begin where it stopped, whatever became of the machine; the template goes alone", async () => {
  const id = await busy();
  const { template } = await shop.platform.templates.createOf("shop", { machine: id, name: "ready" }, never);
  shop.host.guest(id)?.request();
  shop.machines.destroy("shop", id, { force: true });
  await shop.reach(id, "destroyed");
  const born = [
    await shop.platform.templates.bear("shop", "ready", { name: "one" }, never),
    await shop.platform.templates.bear("shop", template.id, {}, never),
  ];
  for (const { record } of born) {
    await shop.reach(record.id, "running");
    expect(shop.host.guest(record.id)?.request()?.count).toBe(3);
    expect(shop.record(record.id).origin).toEqual({ kind: "template", machine: id, template: template.id });
  }
  expect(shop.platform.templates.get("shop", "ready").machines).toEqual(born.map(({ record }) => record.id));
  await shop.platform.templates.delete("shop", "ready");
  expect(seeds()).toEqual([]);
  await shop.suspend(born[0]?.record.id ?? "");
});

test("no request is kept in a template: those that are open end first, and new ones wait", async () => {
  const steps: string[] = [];
  await shop.restart({
    wrap: (deps) => ({
      ...deps,
      holdBack: () => {
        steps.push("held");
        return () => void steps.push("released");
      },
      finishRequests: async () => void steps.push("finished"),
    }),
  });
  const id = await busy();
  await shop.platform.templates.createOf("shop", { machine: id }, never);
  await fork(id);
  expect(steps).toEqual(["held", "finished", "released"]);
});

test("requests wait for the copy of a template, and not for the cluster that is told of it", async () => {
  const steps: string[] = [];
  const claims: MachineDependencies["templateClaims"] = {
    requireFree: async () => {},
    async claim(_made, store) {
      steps.push("told");
      store();
    },
    end: async () => {},
    left() {},
  };
  await shop.restart({
    wrap: (deps) => ({
      ...deps,
      templateClaims: claims,
      holdBack: () => {
        steps.push("held");
        return () => void steps.push("released");
      },
    }),
  });
  const id = await busy();
  await shop.platform.templates.createOf("shop", { machine: id }, never);
  expect(steps).toEqual(["held", "released", "told"]);
});

test("what was sealed of a memory is believed of its copy: a birth's first wake does not read all of it", async () => {
  const id = await busy();
  await shop.platform.templates.createOf("shop", { machine: id, name: "ready" }, never);
  const { record } = await shop.platform.templates.bear("shop", "ready", {}, never);
  await shop.reach(record.id, "running");
  expect(shop.logged()).not.toContain("all of the memory was read before the resume");
});

describe("a fork is refused, with the machine as it was", () => {
  const refused = async (forking: Promise<unknown>) => {
    const error = await forking.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HibernautError);
    expect(seeds()).toEqual([]);
    return (error as HibernautError).message;
  };

  test("of a machine without a memory", async () => {
    const id = await shop.run();
    await shop.stop(id);
    expect(await refused(fork(id))).toMatch(/it is stopped.*machine start/);
  });

  test("of a machine with an agent that cannot become another one", async () => {
    const id = await shop.run();
    shop.world.protocols.set(shop.record(id).bundleVersion, 4);
    expect(await refused(fork(id))).toMatch(/guest bundle is too old.*machine update/);
  });

  test("of a machine with a volume", async () => {
    await shop.volumes.create("shop", { name: "data" });
    const id = await shop.run({ mounts: [{ volume: "data", path: "/data" }] });
    expect(await refused(fork(id))).toContain("volumes");
  });

  test("with a name that is taken, also by one of several", async () => {
    const id = await busy();
    await fork(id, { name: "branch-2" });
    expect(await refused(fork(id, { name: "branch-2" }))).toContain("already has a machine named branch-2");
    expect(await refused(fork(id, { name: "branch", count: 3 }))).toContain("branch-2");
    expect(await refused(fork(id, { count: 101 }))).toContain("1 to 100");
  });
});

describe("while a fork is being made", () => {
  /** Forks twice at the same time; the first one is held at its copy until `meanwhile` is over. */
  const during = async (id: string, meanwhile: () => unknown, more: Parameters<typeof fork>[1] = {}) => {
    const go = shop.hold("capture");
    const forking = fork(id, more).catch((error: unknown) => error as HibernautError);
    await meanwhile();
    go();
    return forking;
  };
  const others = (id: string) => shop.machines.list("shop").filter(({ record }) => record.id !== id);

  test("another one takes the name: one of them is made, and the other says so", async () => {
    const id = await busy();
    await shop.suspend(id);
    const both = await Promise.allSettled([fork(id, { name: "b" }), fork(id, { name: "b" })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(both.find((one) => one.status === "rejected")?.reason.message).toContain("already has a machine named b");
    expect(others(id)).toHaveLength(1);
    expect(seeds()).toEqual([]);
  });

  test("a drain begins: there is no fork", async () => {
    const id = await busy();
    const error = await during(id, () => shop.platform.drain.begin({ suspend: false }));
    expect(error).toMatchObject({ code: "draining" });
    expect(others(id)).toEqual([]);
    shop.platform.drain.end();
  });

  test("the machine stops: there is no fork, because there is no memory any more", async () => {
    const id = await busy();
    /** Disks are asked for when the machine was seen to run, before it is paused. */
    const stopping = (volumes: MachineDependencies["volumes"]) =>
      new Proxy(volumes, {
        get(target, key) {
          const value = Reflect.get(target, key) as unknown;
          if (typeof value !== "function") return value;
          const call = (...args: unknown[]) => Reflect.apply(value, target, args) as unknown;
          if (key !== "disks") return call;
          return async (...args: unknown[]) => {
            if (shop.record(id).state === "running") await shop.stop(id);
            return call(...args);
          };
        },
      });
    await shop.restart({ wrap: (deps) => ({ ...deps, volumes: stopping(deps.volumes) }) });
    await expect(fork(id)).rejects.toThrow("it is stopped, so that it has no memory");
    expect(seeds()).toEqual([]);
  });

  test("another app takes the port: there is no fork", async () => {
    const services = [{ internal_port: 5432, protocol: "tcp" as const, ports: [{ port: 5432 }] }];
    const id = await shop.run({ services });
    const { template } = await shop.platform.templates.createOf("shop", { machine: id }, never);
    shop.machines.destroy("shop", id, { force: true });
    await shop.reach(id, "destroyed");
    shop.platform.apps.create("bank");
    await shop.machines.create("bank", { config: { ...SMALL, services }, skipLaunch: true });
    await expect(shop.platform.templates.bear("shop", template.id, {}, never)).rejects.toThrow("belongs to app bank");
  });

  test("the app is deleted, and another one has its name: nothing of the old one is in it", async () => {
    const id = await shop.sleeper();
    const { promise: deleted, resolve: letGo } = Promise.withResolvers<void>();
    const copied: (() => void)[] = [];
    const both = Promise.all(["fork", "template"].map(() => new Promise<void>((resolve) => copied.push(resolve))));
    /** Both are held once everything is copied. */
    const held = (snapshots: SnapshotStore) =>
      new Proxy(snapshots, {
        get(target, key) {
          const value = Reflect.get(target, key) as unknown;
          if (typeof value !== "function") return value;
          const call = (...args: unknown[]) => Reflect.apply(value, target, args) as unknown;
          if (key !== "inherit" && key !== "sealIn") return call;
          return async (...args: unknown[]) => {
            copied.pop()?.();
            await deleted;
            return call(...args);
          };
        },
      });
    await shop.restart({ wrap: (deps) => ({ ...deps, snapshots: held(deps.snapshots) }) });
    const making = Promise.allSettled([
      fork(id),
      shop.platform.templates.createOf("shop", { machine: id, name: "old" }, never),
    ]);
    await both;
    await shop.platform.apps.delete("shop", { force: true });
    shop.platform.apps.create("shop");
    letGo();
    for (const one of await making) expect(one).toMatchObject({ reason: { code: "aborted" } });
    expect(shop.machines.list("shop")).toEqual([]);
    expect(shop.platform.templates.list("shop")).toEqual([]);
    expect(seeds()).toEqual([]);
  });
});

test("what a fork does not take costs nobody else the memory that another build of QEMU has left", async () => {
  const withQemu = async (version: string) => {
    shop.world.identity = identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
    await shop.restart();
  };
  await withQemu("7.2.18");
  const id = await busy();
  const [born] = await fork(id, { skipLaunch: true });
  await shop.suspend(id);
  shop.host.refusesToBecome.add(born?.record.id ?? "");
  await withQemu("7.2.22");
  await shop.start(born?.record.id ?? "");
  await shop.start(id);
  expect(shop.record(id).lastBoot?.kind).toBe("resume");
});

test("a guest that does not become itself does not run: the machine starts from scratch and says why", async () => {
  const id = await busy();
  const [born] = await fork(id, { skipLaunch: true });
  const child = born?.record.id ?? "";
  shop.host.refusesToBecome.add(child);
  await shop.start(child);
  expect(shop.record(child).lastBoot).toMatchObject({ kind: "cold" });
  expect(shop.record(child).lastBoot?.reason).toMatch(/^resume_failed: the fork did not take its own identity/);
  expect(shop.host.guest(child)?.request()?.count).toBe(1);
});
