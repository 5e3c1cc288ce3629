/** Machines that come and go leave nothing on the host. */
import { beforeAll, expect, test } from "vitest";
import { hostState } from "../helpers/host-state.ts";
import { PATIENT } from "../helpers/patient.ts";
import { Place } from "../helpers/served.ts";
import { packSmallApp, SMALL_APP } from "../helpers/small-app/image.ts";

const MACHINES = 200;
/** Of these, one in this many is started: a boot under emulation takes seconds of a core. */
const STARTED_EVERY = 25;
/** At a time, so that creates and destroys overlap. */
const AT_ONCE = 8;
const LIMIT_MS = 30 * 60_000;

beforeAll(packSmallApp);
const place = Place.forTests(PATIENT);

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test(
  `${MACHINES} machines, created and destroyed: no process, tap, mount, control group or file is left`,
  async () => {
    const { client, app } = place;
    const destroyVolumes = async () => {
      for (const { id } of await client.listVolumes(app)) await client.destroyVolume(app, id);
    };
    // The first machine brings what stays: its image, the template of its layer, the directory of volumes.
    const first = await place.machine({ mounts: [{ volume: "first", path: "/data" }] });
    await client.destroyMachine(app, first.machine_id, { force: true });
    await place.reach(first.machine_id, "destroyed");
    await destroyVolumes();
    const before = await hostState(place.dataDir);

    const ids: string[] = [];
    await eachOf([...Array(MACHINES).keys()], async (number) => {
      const started = number % STARTED_EVERY === 0;
      const config = {
        image: SMALL_APP,
        guest: { memory_mb: 128 },
        services: [{ internal_port: 8080 }],
        ...(number % 10 === 0 && { mounts: [{ volume: `data_${number}`, path: "/data" }] }),
      };
      const { machine_id: id } = await client.createMachine(app, { config, skip_launch: !started });
      ids.push(id);
      if (started) await place.reach(id, "running");
    });
    const during = await hostState(place.dataDir);
    expect(ids).toHaveLength(MACHINES);
    expect(during.processes).toHaveLength(MACHINES / STARTED_EVERY);
    expect(during.files.length).toBeGreaterThan(before.files.length);
    // Half of those that run go while they sleep.
    const running = (await client.listMachines(app)).filter(({ state }) => state === "running");
    await eachOf(running.slice(0, running.length / 2), ({ machine_id: id }) => place.suspend(id));

    await eachOf(ids, async (id) => {
      await client.destroyMachine(app, id, { force: true });
      await place.reach(id, "destroyed");
    });
    await destroyVolumes();
    expect(await hostState(place.dataDir, ids)).toEqual(before);
  },
  LIMIT_MS,
);
