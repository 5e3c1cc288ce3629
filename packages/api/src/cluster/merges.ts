/** Puts the answers of several hosts together, this host's first. Pure. */
import { BOOT_KINDS, type BootKind } from "@hibernaut/domain/machine";
import { findNamed } from "@hibernaut/domain/naming";
import { kindsOf } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import type { Static } from "typebox";
import type { TemplateWire } from "../routes/forks.schemas.ts";
import type { MachineWire } from "../routes/machines.schemas.ts";
import type { TimelineWire, WakesWire } from "../routes/timeline.schemas.ts";
import { type HourPart, hourWire } from "../routes/timeline.ts";
import type { UsageReportReply } from "../routes/usage.schemas.ts";
import type { VolumeWire } from "../routes/volumes.schemas.ts";

type Report = Static<typeof UsageReportReply>;
type Row = Report["total"];
type Merge = (answers: never[], request: FastifyRequest) => unknown;

const A = "/v1/apps/:app_name";

/** By route. Those that answer with a stream are elsewhere. */
export const MERGES: Readonly<Record<string, Merge>> = {
  "GET /v1/machines": (answers: MachineWire[][]) => answers.flat().toSorted(byAppAndAge),
  [`GET ${A}/machines`]: (answers: MachineWire[][]) => answers.flat().toSorted(byAge),
  [`GET ${A}/volumes`]: (answers: VolumeWire[][]) => answers.flat().toSorted(byAge),
  [`GET ${A}/templates`]: (answers: TemplateWire[][]) => mergeTemplates(answers.flat()),
  [`GET ${A}/templates/:template`]: (answers: TemplateWire[], { params }) =>
    findNamed((params as { template: string }).template, mergeTemplates(answers), { noun: "template" }),
  [`GET ${A}/quota`]: (answers: { used: Record<string, number> }[]) => ({
    ...answers[0],
    // All hosts have the same hostnames and previews.
    used: { ...sum(answers.map(({ used }) => used)), ...sharedUse(answers[0]?.used) },
  }),
  "GET /v1/timeline": (answers: TimelineWire[]) => ({
    ...answers[0],
    machines: answers.flatMap(({ machines }) => machines),
  }),
  "GET /v1/wakes": mergeWakes,
  "GET /v1/usage": mergeUsage,
};

/** The lists of machines, in which those of hosts that do not answer are, too. */
export const MACHINE_LISTS: ReadonlySet<string> = new Set(["GET /v1/machines", `GET ${A}/machines`]);

/** Each template once, with the hosts that have it, and the machines that are from it on any host. */
function mergeTemplates(all: readonly TemplateWire[]): TemplateWire[] {
  const copies = [...Map.groupBy(all, ({ id }) => id).values()];
  const both = (lists: readonly (readonly string[])[]) => [...new Set(lists.flat())].toSorted();
  const merged = copies.flatMap((each) => {
    const [first] = each;
    if (first === undefined) return [];
    const machines = both(each.map((copy) => copy.machines));
    const hosts = both(each.map((copy) => copy.hosts ?? []));
    // A host of the version before does not say so.
    return [{ ...first, machines, ...(hosts.length > 0 && { hosts }) }];
  });
  return merged.toSorted(byAge);
}

function byAge(a: { created_at: string }, b: { created_at: string }): number {
  return a.created_at < b.created_at ? -1 : Number(a.created_at > b.created_at);
}

function byAppAndAge(a: MachineWire, b: MachineWire): number {
  if (a.app_name !== b.app_name) return a.app_name < b.app_name ? -1 : 1;
  return byAge(a, b);
}

/** A host of the version before does not say how long each wake took, and is left out. */
type Part = Omit<HourPart, "durationsMs"> & Partial<Pick<HourPart, "durationsMs">>;

/** A host whose clock is a little ahead may be in the next hour already, which is left out until this host is. */
function mergeWakes(answers: (Omit<WakesWire, "hours"> & { hours: Part[] })[]): WakesWire {
  const [first] = answers;
  if (first === undefined) throw new Error("no host has answered");
  const parts = Map.groupBy(
    answers.flatMap(({ hours }) => hours),
    ({ from }) => from,
  );
  const hours = first.hours.map(({ from }) => {
    const all = (kind: BootKind) => (parts.get(from) ?? []).flatMap(({ durationsMs }) => durationsMs?.[kind] ?? []);
    const durationsMs = Object.fromEntries(BOOT_KINDS.map((kind) => [kind, all(kind)]));
    return hourWire({ from: Date.parse(from), kinds: kindsOf(durationsMs) });
  });
  return { from: first.from, until: first.until, hours };
}

function sharedUse({ hostnames = 0, previews = 0 }: Record<string, number> = {}) {
  return { hostnames, previews };
}

/** Rows of the same app, machine or day are added up. */
function mergeUsage(reports: Report[]): Report {
  const [first] = reports;
  if (first === undefined) throw new Error("no host has answered");
  const rows = Map.groupBy(
    reports.flatMap(({ usage }) => usage),
    ({ app_name: app, machine_id: machine, day }) => JSON.stringify([app, machine, day]),
  );
  return {
    ...first,
    usage: [...rows.values()].map(sum).toSorted(byName),
    total: sum(reports.map(({ total }) => total)),
  };
}

function byName(a: Row, b: Row): number {
  const [one, other] = [a, b].map(({ app_name: app, machine_name: machine, day }) => `${day} ${app} ${machine}`);
  return (one ?? "") < (other ?? "") ? -1 : 1;
}

/** Adds up all numbers, at any depth; everything else is that of the first. */
function sum<T extends object>(all: readonly T[]): T {
  const [first] = all;
  if (first === undefined) throw new Error("nothing to add up");
  const added = Object.entries(first).map(([name, value]: [string, unknown]) => {
    const values = all.map((each) => (each as Record<string, unknown>)[name]);
    if (typeof value === "number") return [name, values.reduce<number>((total, each) => total + Number(each), 0)];
    if (typeof value === "object" && value !== null)
      return [name, sum(values.filter((each) => each !== null) as object[])];
    return [name, value];
  });
  return Object.fromEntries(added) as T;
}
