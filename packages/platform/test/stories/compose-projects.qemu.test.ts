/**
 * Projects that many people host: each comes up from its own compose file, sleeps as a whole, and wakes by one request to its
 * front, through web, cache and database.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { HOSTED, writeHosted } from "../helpers/projects/hosted.ts";
import { Project } from "../helpers/projects/project.ts";
import { quietFor } from "../helpers/quiet.ts";
import { Place } from "../helpers/served.ts";

/** Up to five cold starts, two at a time, of databases and of Node. */
const UP_TIMEOUT_MS = 400_000;
const CYCLES = longOr(50, 2);
const CYCLE_MS = 60_000;
/** A sleep in which any other client would be taken for gone. What the services have open between them survives it. */
const LONG_SLEEP_MS = longOr(90_000, 0);

const place = Place.forTests({ HIBERNAUT_READY_TIMEOUT_MS: "110000", HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });

test.each(HOSTED)(
  "$name comes up in order, sleeps, wakes by one request, and loses nothing",
  {
    timeout: UP_TIMEOUT_MS + LONG_SLEEP_MS + CYCLES * CYCLE_MS,
  },
  async (hosted) => {
    const { name, services, workers = [], keep, kept } = hosted;
    const project = new Project(place, name);
    const sleepers = services.filter((service) => !workers.includes(service));
    const names = ["Before the first sleep", ...Array.from({ length: CYCLES }, (_, at) => `Cycle ${at}`)];
    try {
      await writeHosted(project, hosted);
      const { out, err } = await project.up("--json");
      expect(JSON.parse(out).services, err).toMatchObject(services.map((service) => ({ service, action: "deployed" })));
      for (const one of names) {
        await keep(project, one);
        expect(await kept(project)).toEqual(names.slice(0, names.indexOf(one) + 1));
        await project.asleep(...sleepers);
        if (one === names[0]) await quietFor(LONG_SLEEP_MS);
      }
      for (const service of sleepers) {
        const wakes = (await project.events(service)).filter(
          ({ type, details }) => type === "started" && details["kind"] === "resume",
        );
        expect(wakes.length, `${service} slept each time`).toBeGreaterThanOrEqual(CYCLES);
      }
      // Nothing could wake them.
      for (const service of workers) expect((await project.machine(service)).state, service).toBe("running");
    } finally {
      await project.destroy();
    }
  },
);
