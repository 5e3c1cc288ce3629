/** What `hibernaut status --app` shows. */
import type { HibernautClient, Machine } from "@hibernaut/client";
import { urlsFrom } from "./answering.ts";
import { bootWord } from "./boot-words.ts";
import type { Result } from "./command.ts";
import { stateCell } from "./crashed.ts";
import { ago, fields, table } from "./terminal.ts";

/** An app with its machines: where it answers, and how each of them is. */
export async function appStatus(client: HibernautClient, name: string): Promise<Result> {
  const [app, machines, [release]] = await Promise.all([
    client.getApp(name),
    client.listMachines(name),
    client.listReleases(name, { limit: 1 }),
  ]);
  const urls = urlsFrom(client.apiUrl, app);
  const document = { ...app, release: release ?? null, machines };
  const head = fields([
    ["app", name],
    ["answers at", urls.join(", ") || "no address that works from here"],
    ["release", release === undefined ? "none" : `v${release.version}, ${release.status}, ${ago(release.created_at)}`],
  ]);
  const rows = machines.map((machine) => [
    machine.id,
    machine.name,
    stateCell(machine),
    lastStart(machine),
    checksCell(machine),
  ]);
  const list =
    rows.length === 0 ? "It has no machines." : table([["ID", "NAME", "STATE", "LAST START", "CHECKS"], ...rows]);
  return { document, text: `${head}\n\n${list}` };
}

function lastStart({ last_boot: boot }: Machine): string {
  if (boot === null) return "never";
  const kind = boot.kind === "cold" ? `cold (${boot.reason.split(":")[0]})` : bootWord(boot);
  return `${kind} in ${Math.round(boot.duration_ms)} ms, ${ago(boot.at)}`;
}

/** `2 of 3 passing` */
function checksCell({ checks, state }: Machine): string {
  if (checks.length === 0) return state === "running" ? "none" : "";
  return `${checks.filter(({ status }) => status === "passing").length} of ${checks.length} passing`;
}
