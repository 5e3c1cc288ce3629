/** What the dashboard says and sends when machines are made from the memory of another one. */
import { expect, test } from "vitest";
import {
  birthOf,
  childrenOf,
  forksDiskSentence,
  nameIn,
  pauseSentence,
  poolSentence,
  templateDiskSentence,
} from "../src/data/births.ts";
import { machine } from "./a-machine.ts";

const form = (fields: Record<string, string>) => ({ get: (name: string) => fields[name] ?? null });

test("an empty name is left to the platform, and what is not chosen is said", () => {
  expect(birthOf(form({ name: "  " }))).toEqual({ skip_launch: false, skip_service_registration: false });
  expect(birthOf(form({ name: " branch ", cordoned: "on" }))).toEqual({
    name: "branch",
    skip_launch: false,
    skip_service_registration: true,
  });
  expect([nameIn(form({})), nameIn(form({ name: "ready" }))]).toEqual([{}, { name: "ready" }]);
});

test("the machines of a template are those that began with it, by name", () => {
  const born = (id: string, template: string | null) =>
    machine({ machine_id: id, origin: { kind: template === null ? "fork" : "template", machine_id: "a1", template } });
  const machines = [machine({}), born("b10", "t1"), born("b2", "t1"), born("c1", "t2"), born("c2", null)];
  expect(childrenOf(machines, "t1").map(({ machine_id: id }) => id)).toEqual(["b2", "b10"]);
});

test("a pool says how full it is, and a template without one nothing", () => {
  const pool = { size: 3, ready: 2, warm: 1, reason: null };
  expect(poolSentence(pool)).toBe("Pool: 2 of 3 ready, 1 warm");
  expect(poolSentence({ ...pool, warm: 0 })).toBe("Pool: 2 of 3 ready");
  expect(poolSentence({ ...pool, size: 0 })).toBeUndefined();
});

test("only a running machine is paused", () => {
  expect(pauseSentence({ name: "web", state: "running" })).toContain("web is paused while its memory");
  expect(pauseSentence({ name: "web", state: "suspended" })).toBe("web sleeps on.");
});

test("forks cost a memory each, a template one at most", () => {
  expect(forksDiskSentence(1, 256)).toMatch(/^A fork takes 256 MB of the host's disk/);
  expect(forksDiskSentence(5, 512)).toMatch(/^5 forks take 2\.5 GB of the host's disk/);
  expect(templateDiskSentence(256)).toMatch(/^It takes up to 256 MB of the host's disk/);
});
