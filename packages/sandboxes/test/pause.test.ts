/** Pauses that something comes between: clients take 409 for "paused already", so that only a sandbox that sleeps may say it. */
import { readFile, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { newWorld, SMALL, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import type { SandboxNeeds } from "../src/contract.ts";
import type { ChosenSandbox } from "../src/life/chosen.ts";
import { TemplateNames } from "../src/life/names.ts";
import { Sandboxes } from "../src/life/sandboxes.ts";

const CHOSEN: ChosenSandbox = {
  ...{ template: "base", timeoutS: 60, onTimeout: "kill", keepMemory: true, autoResume: false, secure: true },
  ...{ metadata: {}, env: {} },
};
const TIMEOUT = { timeoutMs: 10_000 };
const { signal } = new AbortController();

async function sandbox(chosen: Partial<ChosenSandbox> = {}) {
  const world = await newWorld();
  const platform = await startPlatform(world);
  const needs = {
    resources: platform,
    builds: world.store.builds,
    log: { info() {}, warn() {} },
  } as unknown as SandboxNeeds;
  const sandboxes = new Sandboxes(needs, new TemplateNames(needs), {} as never);
  onTestFinished(async () => {
    world.releaseBoots();
    sandboxes.close();
    await platform.close();
    await world.dispose();
  });
  platform.apps.create("agents");
  await platform.templates.createFrom("agents", { name: "base", config: SMALL, ...TIMEOUT }, signal);
  const { record } = await sandboxes.create("agents", { ...CHOSEN, ...chosen }, signal);
  const { id } = record;
  return {
    ...{ world, machines: platform.machines, sandboxes, id },
    pause: () => sandboxes.pause("agents", id, { memory: true }, signal),
    paused: () => sandboxes.get("agents", id).record.sandbox.paused === true,
    reach: (state: "restarting" | "suspended" | "running") => platform.machines.wait("agents", id, [state], TIMEOUT),
    loseGuest: () => world.host.fail(id, "the guest is gone"),
  };
}

test("one whose guest was lost is paused, forked and kept once it runs again", async () => {
  const { world, sandboxes, loseGuest, reach, pause, paused, id } = await sandbox();
  const release = world.holdBoots();
  loseGuest();
  await reach("restarting");
  const pausing = pause();
  const forking = sandboxes.fork("agents", id, { count: 1, timeoutS: 60 }, signal);
  await expect.poll(() => world.host.of(id)).toHaveLength(1);
  release();
  await Promise.all([pausing, forking]);
  await reach("suspended");
  expect(paused()).toBe(true);
  await expect(pause()).rejects.toMatchObject({ status: 409 });
});

test("a pause whose guest is lost, that fails or is cancelled is told as such, and its sandbox ends in time", async () => {
  const { world, machines, loseGuest, pause, paused, reach, id } = await sandbox();
  world.host.faults.capture = new Error("the disk is full");
  await expect(pause()).rejects.toMatchObject({ status: 503, message: expect.stringContaining("the disk is full") });
  expect(paused()).toBe(false);

  const held = Promise.withResolvers<void>();
  world.host.hold.capture = held.promise;
  const cancelled = pause();
  cancelled.catch(() => {});
  await expect.poll(() => machines.get("agents", id).record.state).toBe("suspending");
  machines.start("agents", id);
  const second = pause();
  held.resolve();
  await expect(cancelled).rejects.toMatchObject({ status: 503 });
  await second;
  machines.start("agents", id);
  await reach("running");

  const again = Promise.withResolvers<void>();
  world.host.hold.capture = again.promise;
  const lost = pause();
  lost.catch(() => {});
  await expect.poll(() => machines.get("agents", id).record.state).toBe("suspending");
  loseGuest();
  world.host.faults.capture = new Error("there is nobody");
  again.resolve();
  await expect(lost).rejects.toMatchObject({ status: 502 });
  expect(paused()).toBe(false);
});

test("one that is resumed without its memory has its files, starts cold, and is not touched while it runs", async () => {
  const { world, sandboxes, machines, pause, id } = await sandbox();
  const layer = `${world.folder}/machines/${id}/layer.ext4`;
  await writeFile(layer, "its files");
  const connect = () => sandboxes.connect("agents", id, { timeoutS: 60, memory: false }, signal);
  expect(await connect()).toMatchObject({ resumed: false });
  expect(machines.get("agents", id).record.lastBoot).toMatchObject({ kind: "resume" });
  await pause();
  expect(await connect()).toMatchObject({ resumed: true });
  expect(machines.get("agents", id).record.lastBoot).toMatchObject({
    kind: "cold",
    reason: expect.stringMatching(/^memory_dropped: /) as string,
  });
  expect(await readFile(layer, "utf8")).toBe("its files");

  const held = Promise.withResolvers<void>();
  world.host.hold.capture = held.promise;
  const pausing = pause();
  await expect.poll(() => machines.get("agents", id).record.state).toBe("suspending");
  const connecting = connect();
  held.resolve();
  await pausing;
  expect(await connecting).toMatchObject({ resumed: true });
  expect(machines.get("agents", id).record.lastBoot).toMatchObject({ kind: "cold" });
});

test("one that is killed while it is paused is gone", async () => {
  const { world, sandboxes, machines, pause, id } = await sandbox();
  const held = Promise.withResolvers<void>();
  world.host.hold.capture = held.promise;
  const pausing = pause();
  pausing.catch(() => {});
  await expect.poll(() => machines.get("agents", id).record.state).toBe("suspending");
  const killing = sandboxes.kill("agents", id);
  held.resolve();
  await killing;
  await expect(pausing).rejects.toMatchObject({ status: 404 });
});

test("a request that wakes one whose time is 0 gives it enough to answer", async () => {
  const { sandboxes, machines, reach, id } = await sandbox({ onTimeout: "pause", autoResume: true });
  sandboxes.setTimeout("agents", id, 0);
  await reach("suspended");
  await sandboxes.wake(sandboxes.get("agents", id), signal);
  sandboxes.look();
  expect(machines.get("agents", id).record.state).toBe("running");
});
