/** What an archive still lacks, and what it says about a machine that was running: pure rules. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backedUp } from "../../machines/src/decide/backed-up.ts";
import { madeSince } from "../src/left-out.ts";
import { missingFrom, nothing } from "../src/missing.ts";

const machine = (id: string, version: string) => ({ id, version }) as MachineRecord;
const volume = (id: string, state: VolumeRecord["state"] = "created") => ({ id, state }) as VolumeRecord;
const recorded = { machines: [], volumes: [], volumeSnapshots: [] };
const NOW = new Date("2026-03-01T00:00:00Z");

describe("an archive lacks", () => {
  test("machines that it does not have, or has in another version", () => {
    const included = nothing();
    included.machines.set("a", "1").set("b", "1");
    const machines = [machine("a", "1"), machine("b", "2"), machine("c", "1")];
    expect(missingFrom(included, { ...recorded, machines })).toEqual(["machine b", "machine c"]);
  });

  test("volumes that are whole; what it has too much does not matter", () => {
    const included = nothing();
    included.volumes.add("v1").add("gone");
    const volumes = [volume("v1"), volume("v2"), volume("v3", "creating"), volume("v4", "destroying")];
    expect(missingFrom(included, { ...recorded, volumes })).toEqual(["volume v2"]);
  });

  test("nothing once everything that is recorded was copied", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string()), fc.uniqueArray(fc.string()), (ids, names) => {
        const included = nothing();
        const machines = ids.map((id) => machine(id, `${id}!`));
        for (const { id, version } of machines) included.machines.set(id, version);
        const volumes = names.map((name) => volume(name));
        for (const name of names) included.volumes.add(name);
        expect(missingFrom(included, { ...recorded, machines, volumes })).toEqual([]);
      }),
    );
  });
});

describe("a backup leaves to the next one", () => {
  const known = { machines: new Set(["a"]), volumes: new Set(["v"]), volumeSnapshots: new Set<string>() };

  test("what was made while the last things were copied, unless it was copied just in time", () => {
    const included = nothing();
    included.machines.set("a", "1");
    included.volumes.add("v").add("in time");
    const machines = [machine("a", "1"), machine("late", "1")];
    const volumes = [volume("v"), volume("in time"), volume("late", "creating")];
    expect(madeSince(known, included, { ...recorded, machines, volumes })).toEqual({
      machines: [machine("late", "1")],
      volumes: [volume("late", "creating")],
      volumeSnapshots: [],
    });
  });

  test("nothing that was there before: a disk that could not be copied in time is missing, and is never left out", () => {
    const left = madeSince(known, nothing(), { ...recorded, machines: [machine("a", "2")], volumes: [volume("v")] });
    expect(left).toEqual(recorded);
  });
});

describe("a machine that was running", () => {
  const running = {
    ...machine("a", "1"),
    state: "running",
    goal: null,
    snapshot: null,
    resetLayer: true,
    notSuspended: { by: "proxy", reason: "x" },
  } as MachineRecord;
  const snapshot = { generation: "g", created_at: NOW.toISOString(), size_bytes: 1 };

  test("sleeps in the backup, and starts again like after a drain", () => {
    const { record, event } = backedUp(running, { snapshot }, NOW);
    expect(record).toMatchObject({ state: "suspended", snapshot, drained: true, notSuspended: null });
    expect(event).toMatchObject({ type: "captured", from: "running", to: "suspended", details: { by: "backup" } });
    expect(running.state, "the record of the platform is not touched").toBe("running");
  });

  test("is stopped in it if its memory is not there, with its files kept and the reason", () => {
    const { record, event } = backedUp(running, { snapshot: null, reason: "it is too large" }, NOW);
    expect(record).toMatchObject({ state: "stopped", snapshot: null, drained: true, resetLayer: false });
    expect(record.coldReason).toBe("backup_without_memory: it is too large");
    expect(event).toMatchObject({
      type: "halted",
      to: "stopped",
      details: { by: "backup", reason: "it is too large" },
    });
  });
});
