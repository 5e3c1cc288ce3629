/**
 * What a sandbox has after its virtual machine was killed: what its machine has after a power cut.
 *
 * @module-tag again
 */
import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { e2bOptions, sandboxTemplate, WITH_SANDBOXES } from "../helpers/e2b.ts";
import { quietFor } from "../helpers/quiet.ts";
import { Place } from "../helpers/served.ts";

/** The guest's file system commits its journal every 5 s, and writes contents that nobody flushed after 30 s. */
const COMMITTED_MS = 12_000;

const place = Place.forTests(WITH_SANDBOXES);

test("a file that was written is whole or not there, and a pause waits until the sandbox runs again", async () => {
  await sandboxTemplate(place);
  const sandbox = await Sandbox.create(await e2bOptions(place));
  await sandbox.files.write("flushed.txt", "flushed");
  await sandbox.commands.run("sync");
  const content = "whole ".repeat(20_000);
  await sandbox.files.write("new.txt", content);
  await quietFor(COMMITTED_MS);
  const [vmm] = await place.processes();
  process.kill(vmm?.pid ?? 0, "SIGKILL");
  const state = async () => (await place.get(sandbox.sandboxId)).state;
  await expect.poll(state, { timeout: 30_000, interval: 10 }).not.toBe("running");
  expect(await sandbox.pause()).toBe(true);
  expect((await sandbox.getInfo()).state).toBe("paused");
  await sandbox.connect();
  expect((await place.get(sandbox.sandboxId)).last_boot?.kind).toBe("resume");
  expect(await sandbox.files.read("flushed.txt")).toBe("flushed");
  // It was committed: it is there.
  expect((await sandbox.files.read("new.txt")).length).toBe(content.length);
  await sandbox.kill();
});
