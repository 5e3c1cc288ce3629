/**
 * A sleeping machine that is updated and prewarmed: its next visitor finds the new version asleep, and wakes it.
 *
 * @module-tag again
 */
import { expect, test, vi } from "vitest";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place, WARM } from "../helpers/served.ts";
import { waitS } from "../helpers/slow.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

/** Only a fault reaches it. */
const LIMIT_MS = 60_000;

const place = Place.forTests(WARM);

const config = (color: string) => ({
  image: SMALL_APP,
  env: { COLOR: color },
  services: [{ internal_port: 8080, autostop: "off" as const }],
  checks: { up: { type: "http" as const, port: 8080, path: "/health", interval: "1s", timeout: "1s" } },
});

async function visit(path: string) {
  const answer = await ask({ proxyUrl: place.proxyUrl, app: place.app }, path);
  expect(answer.status, answer.text).toBe(200);
  return { kind: wakeOf(answer).kind, text: answer.text };
}

test("the new version is started, checked and suspended, and wakes warm, or from its snapshot", async () => {
  const { machine_id: id } = await place.machine(config("red"));
  expect((await visit("/env")).text).toContain("red");
  for (const [color, kind] of [
    ["green", "warm"],
    ["blue", "resume"],
  ] as const) {
    await place.suspend(id);
    await place.client.updateMachine(place.app, id, config(color), { prewarm: true });
    await place.client.waitForMachine(place.app, id, { state: ["prewarmed"], timeout: waitS(120) });
    const asleep = await place.get(id);
    expect(asleep).toMatchObject({ state: "suspended", prewarm: { status: "done" } });
    expect(asleep.snapshot).not.toBeNull();
    if (kind === "resume") {
      const [kept] = await place.processes();
      if (kept === undefined) throw new Error("nothing is kept");
      process.kill(kept.pid, "SIGKILL");
      await vi.waitFor(async () => expect(await place.processes()).toEqual([]), LIMIT_MS);
    }
    const woken = await visit("/env");
    expect(woken.kind).toBe(kind);
    expect(woken.text).toContain(color);
  }
});
