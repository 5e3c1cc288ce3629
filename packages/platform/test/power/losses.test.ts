/** The check after a power cut finds what is lost, and accepts what may be. */
import { describe, expect, test } from "vitest";
import { type After, type Entry, Journal, type MachineAfter, outcomeOf } from "./journal.ts";
import { findLosses } from "./losses.ts";

const M = "5f541f9f4c0fdc";
const CUT: Entry = { kind: "cut" };
const wrote = (key: string, value: string | null, outcome: "acknowledged" | "unknown" = "acknowledged"): Entry => ({
  kind: "wrote",
  key,
  value,
  outcome,
});
const reported = (state: string): Entry => ({ kind: "reported", machine: M, state });
const ordered = (order: "start" | "suspend" | "stop" | "update"): Entry => ({ kind: "ordered", machine: M, order });
const asked: Entry = { kind: "asked", machine: M };
const answered = (nonce: string, count: number): Entry => ({ kind: "answered", machine: M, nonce, count });
const noted = (line: string, outcome: "acknowledged" | "unknown" = "acknowledged"): Entry => ({
  kind: "noted",
  machine: M,
  line,
  outcome,
});
const stored = (records: Record<string, string>): After => ({ stored: records, machines: {} });

/** The machine after the cut: resumed, unless told otherwise. */
function machine(found: Partial<MachineAfter>): After {
  const boot = { kind: "resume", reason: "snapshot" } as const;
  const usual = { state: "suspended", stateReason: null, events: [], boot, answer: null, lines: null, refusal: null };
  return { stored: {}, machines: { [M]: { ...usual, ...found } } };
}
const cold = (reason: string) => ({ kind: "cold", reason }) as const;
const lost = { type: "lost", details: { reason: "the VMM ended while the platform was away" } };
const losses = (journal: readonly Entry[], after: After) => findLosses([...journal, CUT], after);

describe("what was stored", () => {
  test("is there, or it is a loss", () => {
    const journal = [wrote("app shop", "there"), wrote("volume shop/data", "1 GB"), wrote("volume shop/data", "2 GB")];
    expect(losses(journal, stored({ "app shop": "there", "volume shop/data": "2 GB" }))).toEqual([]);
    expect(losses(journal, stored({ "app shop": "there" }))).toEqual(['volume shop/data is absent instead of "2 GB"']);
    expect(losses(journal, stored({ "app shop": "there", "volume shop/data": "1 GB" }))).toEqual([
      'volume shop/data is "1 GB" instead of "2 GB"',
    ]);
  });

  test("and then deleted stays deleted", () => {
    const journal = [wrote("secret shop/TOKEN", "there"), wrote("secret shop/TOKEN", null)];
    expect(losses(journal, stored({}))).toEqual([]);
    expect(losses(journal, stored({ "secret shop/TOKEN": "there" }))).toHaveLength(1);
  });

  test("may be there or not while no answer came, and has to stay as it was found", () => {
    const journal = new Journal();
    journal.add(wrote("release shop/1", "pending"));
    journal.add(wrote("release shop/1", "complete", "unknown"));
    expect(findLosses(journal.entries, stored({ "release shop/1": "pending" }))).toEqual([]);
    expect(findLosses(journal.entries, stored({ "release shop/1": "complete" }))).toEqual([]);
    expect(findLosses(journal.entries, stored({}))).toHaveLength(1);
    journal.confirm({ "release shop/1": "complete" });
    expect(findLosses(journal.entries, stored({ "release shop/1": "pending" }))).toHaveLength(1);
  });

  test("counts as requested unless the platform said no", async () => {
    const fail = (status?: number) => () => Promise.reject(Object.assign(new Error("it failed"), { status }));
    expect(await outcomeOf(() => Promise.resolve())).toBe("acknowledged");
    expect(await outcomeOf(fail(409))).toBe("refused");
    expect(await outcomeOf(fail(503))).toBe("unknown");
    expect(await outcomeOf(fail())).toBe("unknown");
  });
});

describe("a suspended machine", () => {
  const asleep = [
    reported("running"),
    asked,
    answered("a", 6),
    asked,
    answered("a", 7),
    ordered("suspend"),
    reported("suspended"),
  ];

  test("continues with the memory it had", () => {
    expect(losses(asleep, machine({ answer: { nonce: "a", count: 8 } }))).toEqual([]);
  });

  test("that starts cold is a loss, whatever the reason", () => {
    const found = machine({ boot: cold("snapshot_missing: there is no manifest"), answer: { nonce: "b", count: 1 } });
    expect(losses(asleep, found)).toEqual([
      `machine ${M}: it was suspended, and started cold: snapshot_missing: there is no manifest`,
      `machine ${M}: it was suspended, and another process answers`,
      `machine ${M}: it started cold because of snapshot_missing: there is no manifest`,
    ]);
  });

  test("that is not suspended any more is a loss", () => {
    const found = machine({ state: "failed", stateReason: "it was lost", answer: { nonce: "a", count: 8 } });
    expect(losses(asleep, found)).toEqual([`machine ${M}: it was suspended and is failed`]);
  });

  test("with an older memory than it fell asleep with is a loss", () => {
    const found = machine({ answer: { nonce: "a", count: 7 } });
    expect(losses(asleep, found).join()).toMatch(/resumed with answer 7.*a snapshot ran twice/);
  });

  test("may have counted a request whose answer was never heard", () => {
    const journal = [reported("running"), asked, answered("a", 7), asked, ordered("suspend"), reported("suspended")];
    expect(losses(journal, machine({ answer: { nonce: "a", count: 9 } }))).toEqual([]);
    expect(losses(journal, machine({ answer: { nonce: "a", count: 10 } }))).toHaveLength(1);
  });

  test("that does not start is a loss", () => {
    expect(losses(asleep, machine({ boot: null, refusal: "QEMU did not start" }))).toEqual([
      `machine ${M}: it does not start: QEMU did not start`,
    ]);
  });
});

describe("a machine that ran", () => {
  const awake = [reported("suspended"), ordered("start"), reported("running"), asked, answered("a", 8)];

  test("starts cold, and its events say why", () => {
    const found = { state: "failed", stateReason: "lost", boot: cold("vmm_lost"), answer: { nonce: "b", count: 1 } };
    expect(losses(awake, machine({ ...found, events: [lost] }))).toEqual([]);
    expect(losses(awake, machine(found))).toEqual([`machine ${M}: it ran when the power failed, and no event says so`]);
  });

  test("that resumes from the snapshot it was resumed from has run it twice", () => {
    expect(losses(awake, machine({ answer: { nonce: "a", count: 8 } }))).toEqual([
      `machine ${M}: a snapshot ran twice: answer 8 came after answer 8 of the same process`,
      `machine ${M}: it ran when the power failed, and is suspended: its snapshot is stale`,
    ]);
  });

  test("does not bring back a process that another one had replaced", () => {
    const journal = [
      ...awake,
      ordered("stop"),
      reported("stopped"),
      ordered("start"),
      reported("running"),
      asked,
      answered("b", 1),
    ];
    const found = machine({ state: "failed", stateReason: "lost", events: [lost], answer: { nonce: "a", count: 20 } });
    expect(losses(journal, found)).toEqual([`machine ${M}: a process answers that another one had already replaced`]);
  });

  test("and failed says why", () => {
    const found = machine({ state: "failed", events: [lost], boot: cold("vmm_lost") });
    expect(losses(awake, found)).toEqual([`machine ${M}: it failed without a reason`]);
  });
});

describe("a machine in between", () => {
  const leaving = [reported("running"), asked, answered("a", 3), ordered("suspend")];
  const waking = [...leaving, reported("suspended"), ordered("start")];

  test("sleeps or was lost, when the power failed during the suspend", () => {
    expect(losses(leaving, machine({ answer: { nonce: "a", count: 4 } }))).toEqual([]);
    const found = { state: "failed", stateReason: "lost", events: [lost], boot: cold("vmm_lost") };
    expect(losses(leaving, machine({ ...found, answer: { nonce: "b", count: 1 } }))).toEqual([]);
  });

  test("resumes, or says that its snapshot was in use, when the power failed during the resume", () => {
    expect(losses(waking, machine({ state: "running", answer: { nonce: "a", count: 4 } }))).toEqual([]);
    const found = { state: "running", boot: cold("resume_lost"), answer: { nonce: "b", count: 1 } };
    expect(losses(waking, machine(found))).toEqual([]);
  });

  test("never starts cold because of a damaged file", () => {
    const found = { state: "running", boot: cold("snapshot_corrupt: the memory file has changed") };
    expect(losses(waking, machine(found))).toEqual([
      `machine ${M}: it started cold because of snapshot_corrupt: the memory file has changed`,
    ]);
  });

  test("does not stay in between", () => {
    expect(losses(waking, machine({ state: "starting" }))).toEqual([
      `machine ${M}: recovery left it in the passing state starting`,
    ]);
  });
});

describe("a line on a volume", () => {
  const journal = [noted("1"), noted("2", "unknown"), noted("3")];
  const read = (...lines: string[]) => losses(journal, machine({ lines }));

  test("is there once its flush was acknowledged, and may be there before", () => {
    expect(read("1", "2", "3")).toEqual([]);
    expect(read("1", "3")).toEqual([]);
  });

  test("that is missing, unknown or out of order is a loss", () => {
    expect(read("1", "2")).toEqual([`machine ${M}: its volume lacks 1 flushed lines: 3`]);
    expect(read("1", "3", "\0\0")).toEqual([
      `machine ${M}: its volume has lines that nobody wrote: ["\\u0000\\u0000"]`,
    ]);
    expect(read("3", "1")).toEqual([`machine ${M}: the lines of its volume are out of order`]);
  });
});
