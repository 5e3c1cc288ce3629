/**
 * Secrets reach the app of a real machine at its next boot, and what sleeps does not wake with the old ones.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";

const VALUE = "s3cret-value";

const place = Place.forTests();

const request = () => ask({ proxyUrl: place.proxyUrl, app: place.app }, "/env");
const environment = async () => JSON.parse((await request()).text) as Record<string, string>;
const set = (secrets: Record<string, string>) => place.client.setSecrets(place.app, secrets);

test("set, restart, suspend, set again, request: the app has what was set last", async () => {
  const { machine_id: id } = await place.machine({ env: { MODE: "config" } });
  expect(await set({ TOKEN: VALUE, MODE: "secret", LONG: "x".repeat(48 * 1024) })).toEqual({
    discarded: [],
    pending: [id],
  });
  expect(await environment()).toMatchObject({ MODE: "config" });

  await place.client.restartMachine(place.app, id);
  await place.reach(id, "running");
  const second = await environment();
  expect(second).toMatchObject({ TOKEN: VALUE, MODE: "secret", HIBERNAUT_APP_NAME: place.app });
  expect(second.LONG).toHaveLength(48 * 1024);
  const [{ pid } = { pid: 0 }] = await place.processes();
  const { stdout: commandLine } = await promisify(execFile)("ps", ["-ww", "-o", "args=", "-p", String(pid)]);
  expect(commandLine).toContain("qemu");
  expect(commandLine).not.toContain(VALUE);

  await place.suspend(id);
  expect(await set({ TOKEN: "rotated" })).toEqual({ discarded: [id], pending: [] });
  await place.reach(id, "suspended");
  expect(await place.get(id)).toMatchObject({ state: "suspended", snapshot: null });
  const woken = await request();
  expect(wakeOf(woken).kind).toBe("cold");
  expect(JSON.parse(woken.text)).toMatchObject({ TOKEN: "rotated", MODE: "secret" });
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "cold", reason: "secrets_changed" });

  const shown = [await place.get(id), await place.client.listMachineEvents(place.app, id)];
  expect(JSON.stringify([shown, await place.client.listSecrets(place.app)])).not.toMatch(/s3cret-value|rotated/);
});
