/**
 * What a power cut has cost that it must not cost: a pure comparison of what the platform had promised with what is
 * there afterwards.
 */
import type { After, Entry, MachineAfter } from "./journal.ts";

/** Words that a cold start may give as its reason after a cut. Any other word means that something was damaged. */
const HONEST_REASONS = new Set(["first_start", "stopped", "updated", "vmm_lost", "resume_lost"]);
const RESTING = new Set(["created", "running", "suspended", "stopped", "failed", "restarting"]);

/** Returns a sentence for everything that was promised and is gone, or changed without a reason. Empty: nothing is. */
export function findLosses(journal: readonly Entry[], after: After): string[] {
  return [
    ...lostRecords(journal, after.stored),
    ...Object.entries(after.machines).flatMap(([id, found]) => machineLosses(id, entriesOf(journal, id), found)),
  ];
}

/** A stored value is the last one acknowledged, or one that was requested later and never answered. */
function lostRecords(journal: readonly Entry[], stored: After["stored"]): string[] {
  const allowed = new Map<string, (string | null)[]>();
  for (const entry of journal) {
    if (entry.kind !== "wrote") continue;
    const before = entry.outcome === "acknowledged" ? [] : (allowed.get(entry.key) ?? [null]);
    allowed.set(entry.key, [...before, entry.value]);
  }
  return [...allowed].flatMap(([key, values]) => {
    const found = stored[key] ?? null;
    if (values.includes(found)) return [];
    return [`${key} is ${say(found)} instead of ${values.map(say).join(" or ")}`];
  });
}

function say(value: string | null): string {
  return value === null ? "absent" : `"${value}"`;
}

type OfMachine = Extract<Entry, { machine: string }>;

function entriesOf(journal: readonly Entry[], id: string): OfMachine[] {
  return journal.filter((entry): entry is OfMachine => "machine" in entry && entry.machine === id);
}

function machineLosses(id: string, entries: readonly OfMachine[], found: MachineAfter): string[] {
  const faults = [
    ...stateFaults(entries, found),
    ...memoryFaults(entries, found),
    ...reasonFaults(entries, found),
    ...lineFaults(entries, found),
    ...(found.refusal === null ? [] : [`it does not start: ${found.refusal}`]),
  ];
  return faults.map((fault) => `machine ${id}: ${fault}`);
}

/** The last state that the API named, and what was asked of the machine since. */
function lastPromise(entries: readonly OfMachine[]): { state: string | undefined; orders: string[] } {
  const at = entries.findLastIndex((entry) => entry.kind === "reported" && RESTING.has(entry.state));
  const last = entries[at];
  const orders = entries.slice(at + 1).flatMap((entry) => (entry.kind === "ordered" ? [entry.order] : []));
  return { state: last?.kind === "reported" ? last.state : undefined, orders };
}

/** A machine that rested, and of which nothing was asked since, rests as it did. */
function stateFaults(entries: readonly OfMachine[], { state }: MachineAfter): string[] {
  const faults = RESTING.has(state) ? [] : [`recovery left it in the passing state ${state}`];
  const { state: promised, orders } = lastPromise(entries);
  const lasts = promised === "suspended" || promised === "stopped" || promised === "created";
  if (lasts && orders.length === 0 && state !== promised) faults.push(`it was ${promised} and is ${state}`);
  return faults;
}

/**
 * The memory of a suspended machine is there, and no memory comes back that has already lived on: a process counts its
 * answers, so one that resumes twice from the same snapshot repeats a number.
 */
function memoryFaults(entries: readonly OfMachine[], { boot, answer }: MachineAfter): string[] {
  const answers = entries.filter((entry) => entry.kind === "answered");
  const last = answers.at(-1);
  const { state, orders } = lastPromise(entries);
  const faults: string[] = [];
  if (state === "suspended" && orders.length === 0 && boot?.kind === "cold")
    faults.push(`it was suspended, and started cold: ${boot.reason}`);
  if (answer === null || last === undefined) return faults;
  const before = answers.findLast(({ nonce }) => nonce === answer.nonce);
  const unheard = entries.slice(entries.lastIndexOf(last) + 1).filter(({ kind }) => kind === "asked").length;
  const most = last.count + 1 + unheard;
  const kept = state === "suspended" && orders.length === 0;
  if (kept && answer.nonce !== last.nonce) faults.push("it was suspended, and another process answers");
  if (kept && answer.nonce === last.nonce && (answer.count <= last.count || answer.count > most))
    faults.push(`it was suspended after answer ${last.count}, and resumed with answer ${answer.count}`);
  if (before !== undefined && answer.count <= before.count)
    faults.push(`a snapshot ran twice: answer ${answer.count} came after answer ${before.count} of the same process`);
  if (before !== undefined && before.nonce !== last.nonce)
    faults.push("a process answers that another one had already replaced");
  return faults;
}

/** Memory that is gone has a reason, which the machine's last start or its events give. */
function reasonFaults(entries: readonly OfMachine[], { state, stateReason, events, boot }: MachineAfter): string[] {
  const faults: string[] = [];
  const word = boot?.kind === "cold" ? (boot.reason.split(":")[0] ?? "") : undefined;
  if (word !== undefined && !HONEST_REASONS.has(word)) faults.push(`it started cold because of ${boot?.reason}`);
  if (state === "failed" && !stateReason) faults.push("it failed without a reason");
  const { state: promised, orders } = lastPromise(entries);
  const ran = promised === "running" && orders.length === 0;
  const told = events.some(({ type, details }) => type.startsWith("lost") && Boolean(details["reason"]));
  if (ran && state !== "suspended" && !told) faults.push("it ran when the power failed, and no event says so");
  if (ran && state === "suspended")
    faults.push("it ran when the power failed, and is suspended: its snapshot is stale");
  return faults;
}

/** Every line whose flush was acknowledged is there, in order; a line that nobody wrote is not. */
function lineFaults(entries: readonly OfMachine[], { lines }: MachineAfter): string[] {
  if (lines === null) return [];
  const noted = entries.filter((entry) => entry.kind === "noted");
  const sent = new Set(noted.map(({ line }) => line));
  const sure = noted.filter(({ outcome }) => outcome === "acknowledged").map(({ line }) => line);
  const missing = sure.filter((line) => !lines.includes(line));
  const foreign = lines.filter((line) => !sent.has(line));
  const kept = lines.filter((line) => sure.includes(line));
  const faults: string[] = [];
  if (missing.length > 0)
    faults.push(`its volume lacks ${missing.length} flushed lines: ${missing.slice(0, 3).join(", ")}`);
  if (foreign.length > 0) faults.push(`its volume has lines that nobody wrote: ${JSON.stringify(foreign.slice(0, 3))}`);
  if (missing.length === 0 && kept.join("\n") !== sure.join("\n"))
    faults.push("the lines of its volume are out of order");
  return faults;
}
