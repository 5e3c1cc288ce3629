/** What is lost when apps are destroyed with their machines and volumes. */
import type { HibernautClient, Machine, Volume } from "@hibernaut/client";
import { requireAllHosts } from "./absent-hosts.ts";
import { agree } from "./confirming.ts";
import { megabytes } from "./terminal.ts";

/** What an app has. */
export interface Loss {
  app: string;
  /** Hosts of a cluster that did not answer, and may have volumes of the app. */
  missing: string[];
  machines: Machine[];
  volumes: (Volume & { snapshots: number })[];
}

/** Looks up what an app has. */
export async function lossOf(client: HibernautClient, app: string): Promise<Loss> {
  await client.getApp(app);
  let missing: string[] = [];
  const onMissing = (hosts: string[]) => (missing = hosts);
  const [machines, volumes] = await Promise.all([client.listMachines(app), client.listVolumes(app, { onMissing })]);
  const counted = volumes.map(async (volume) => {
    const { length: snapshots } = await client.listVolumeSnapshots(app, volume.id);
    return { ...volume, snapshots };
  });
  return { app, missing, machines, volumes: await Promise.all(counted) };
}

/**
 * On a terminal, lists what will be lost and asks. Elsewhere, only volumes need `--yes`: machines can be recreated. Nobody
 * can agree to lose what is not known: without `--yes`, rejects while a host may have more.
 */
export async function agreeToLose(losses: readonly Loss[], yes: boolean): Promise<void> {
  const names = losses.map(({ app }) => app).join(", ");
  const machines = losses.flatMap((loss) => loss.machines);
  const volumes = losses.flatMap((loss) => loss.volumes);
  const missing = [...new Set(losses.flatMap((loss) => loss.missing))];
  if (!yes) requireAllHosts(missing, `may have volumes of ${names}, which would be deleted`);
  const nothing = machines.length === 0 && volumes.length === 0 && missing.length === 0;
  const unasked = volumes.length === 0 && !process.stdin.isTTY;
  if (nothing || unasked) return;
  const what = `${losses.length === 1 ? "app" : "apps"} ${names}`;
  await agree(lossText(what, { machines, volumes, missing }), { yes, what: "destroyed" });
}

function lossText(what: string, { missing, machines, volumes }: Omit<Loss, "app">): string {
  return [
    `Together with ${what}, these will be deleted permanently:`,
    ...machines.map(({ id, name, state }) => `  machine ${id} (${name}), ${state}`),
    ...volumes.map(
      ({ id, name, size_gb: size, used_bytes: used, snapshots }) =>
        `  volume ${id} (${name}), ${size} GB, ${megabytes(used)} used, ${snapshots} snapshot(s)`,
    ),
    ...missing.map((host) => `  what host ${host} has of it, which did not answer`),
    volumes.length + missing.length > 0 ? "Data on volumes cannot be recovered." : "Their data is not kept.",
  ].join("\n");
}
