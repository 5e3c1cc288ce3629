/** What `hibernaut status --app` shows. */
import type { HibernautClient, Machine } from "@hibernaut/client";
import { hasService, urlsFrom } from "./answering.ts";
import type { Result } from "./command.ts";
import { stateCell } from "./crashed.ts";
import { listText } from "./listing.ts";
import { lastStart, memoryMb } from "./machine-columns.ts";
import type { OutputOptions } from "./output-format.ts";
import { ago, fields } from "./terminal.ts";

const NOWHERE = "nowhere: no machine has a service";

/** An app with its machines: where it answers, and how each of them is. */
export async function appStatus(client: HibernautClient, name: string, options: OutputOptions): Promise<Result> {
  const [app, machines, [release]] = await Promise.all([
    client.getApp(name),
    client.listMachines(name),
    client.listReleases(name, { limit: 1 }),
  ]);
  const urls = urlsFrom(client.apiUrl, app);
  const document = { ...app, release: release ?? null, machines };
  const head = fields([
    ["app", name],
    ["answers at", machines.some(hasService) ? urls.join(", ") || "no address that works from here" : NOWHERE],
    ["release", release === undefined ? "none" : `v${release.version}, ${release.status}, ${ago(release.created_at)}`],
  ]);
  const listing = {
    head: ["ID", "NAME", "STATE", "LAST START", "CHECKS"],
    row: (machine: Machine) => [machine.id, machine.name, stateCell(machine), lastStart(machine), checksCell(machine)],
    wide: {
      head: ["MEMORY", "ADDRESS", "VERSION"],
      row: (machine: Machine) => [`${memoryMb(machine)} MB`, machine.private_address, machine.version],
    },
    spare: ["CHECKS"],
    id: (machine: Machine) => machine.id,
    empty: "It has no machines.",
  };
  const list = listText(machines, listing, options);
  return { document, text: `${head}\n\n${list}` };
}

/** `2 of 3 passing` */
function checksCell({ checks, state }: Machine): string {
  if (checks.length === 0) return state === "running" ? "none" : "";
  return `${checks.filter(({ status }) => status === "passing").length} of ${checks.length} passing`;
}
