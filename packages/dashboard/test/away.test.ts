/** How the overview shows machines whose host cannot be asked. */
import { expect, test } from "vitest";
import { sleepingMemory, stateLabel, toneOf } from "../src/data/tone.ts";
import { machine } from "./a-machine.ts";

const MB = 1024 * 1024;

test("a machine of a host that is away does not look as if it ran, and its memory is not counted as saved", () => {
  const away = machine({ machine_id: "c1", host: "c", host_state: "unreachable" });
  expect([toneOf(away), stateLabel(away)]).toEqual(["failed", "unreachable, was running"]);
  const here = [
    machine({ machine_id: "a1", host: "a", host_state: "up" }),
    machine({ machine_id: "a2", host: "a", host_state: "up", state: "stopped" }),
  ];
  expect(here.map(toneOf)).toEqual(["running", "stopped"]);
  expect(sleepingMemory([...here, away])).toEqual({ all: 512 * MB, asleep: 256 * MB });
});
