/** What is lost when an app is destroyed with its machines and volumes. */
import type { HibernautClient, Machine, Volume } from "@hibernaut/client";
import { agree } from "./confirming.ts";
import { megabytes } from "./terminal.ts";

/** The machines and volumes of an app. */
interface Loss {
  app: string;
  machines: Machine[];
  volumes: (Volume & { snapshots: number })[];
}

/** Looks up what an app has. */
export async function lossOf(client: HibernautClient, app: string): Promise<Loss> {
  await client.getApp(app);
  const [machines, volumes] = await Promise.all([client.listMachines(app), client.listVolumes(app)]);
  const counted = volumes.map(async (volume) => {
    const { length: snapshots } = await client.listVolumeSnapshots(app, volume.id);
    return { ...volume, snapshots };
  });
  return { app, machines, volumes: await Promise.all(counted) };
}

/** On a terminal, lists what will be lost and asks. Elsewhere, only volumes need `--yes`: machines can be recreated. */
export async function agreeToLose(loss: Loss, yes: boolean): Promise<void> {
  const nothing = loss.machines.length === 0 && loss.volumes.length === 0;
  const unasked = loss.volumes.length === 0 && !process.stdin.isTTY;
  if (nothing || unasked) return;
  await agree(lossText(loss), { yes, what: "destroyed" });
}

/** One line for each machine and volume, and a closing sentence. */
function lossText({ app, machines, volumes }: Loss): string {
  return [
    `Together with app ${app}, these will be deleted permanently:`,
    ...machines.map(({ id, name, state }) => `  machine ${id} (${name}), ${state}`),
    ...volumes.map(
      ({ id, name, size_gb: size, used_bytes: used, snapshots }) =>
        `  volume ${id} (${name}), ${size} GB, ${megabytes(used)} used, ${snapshots} snapshot(s)`,
    ),
    volumes.length > 0 ? "Data on volumes cannot be recovered." : "Their data is not kept.",
  ].join("\n");
}
