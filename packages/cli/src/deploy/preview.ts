/** What a deploy of a preview does besides a deploy: an app of its own, for a while, with nothing of the production's. */
import type { App, Machine, MachineConfig, ServiceConfig, Volume } from "@hibernaut/client";
import { isVolumeId } from "@hibernaut/domain/naming";
import { tlsHandlerOf } from "@hibernaut/domain/tcp-handlers";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { given } from "../option-values.ts";
import { megabytes } from "../terminal.ts";
import type { Deployment } from "./deployment.ts";
import { groupOf, type WantedGroup } from "./plan.ts";

/** What the options of the command say about the preview. */
export interface PreviewOptions {
  preview?: string;
  ttl?: number;
  copySecrets?: boolean;
  copyVolumes?: boolean;
}

/** Makes or renews the preview, with what the options give it of the production. Returns it, and what to deploy to it. */
export async function preparePreview(
  production: Context,
  deployment: Deployment,
  { preview: name = "", ttl, copySecrets, copyVolumes = false }: PreviewOptions,
): Promise<{ app: App; deployment: Deployment }> {
  const { groups, closed } = previewGroups(deployment.groups);
  const client = await production.client();
  const app = await client.putPreview(production.app, name, given({ ttl, copy_secrets: copySecrets }));
  production.say(
    `App ${app.name} is preview ${name} of ${production.app}. It is destroyed ${app.preview?.expires_at}, with its machines and volumes, unless it is deployed again.`,
  );
  if (copySecrets)
    production.say(
      `It has the secrets of ${production.app}: its code, and everyone who may deploy to it, can read them.`,
    );
  for (const port of closed)
    production.say(`TCP port ${port} of the app file belongs to ${production.app}, and the preview is without it.`);
  if (copyVolumes) await copyVolumesTo(production, app.name, groups);
  return { app, deployment: { ...deployment, groups } };
}

/** The groups of an app file as a preview has them: one machine of each, which sleeps, and no port that only one app can have. */
export function previewGroups(groups: ReadonlyMap<string, WantedGroup>): {
  groups: ReadonlyMap<string, WantedGroup>;
  closed: number[];
} {
  const closed = new Set<number>();
  const serviceOf = (service: ServiceConfig): ServiceConfig[] => {
    const { ports: all = [], ...others } = service;
    const ports = all.filter(({ handlers = [] }) => tlsHandlerOf(handlers) !== undefined);
    for (const { port } of all) if (!ports.some((kept) => kept.port === port)) closed.add(port);
    if (all.length > 0 && ports.length === 0) return [];
    const autostop = others.autostop === "stop" ? "stop" : "suspend";
    return [{ ...others, autostop, autostart: true, min_machines_running: 0, ...(ports.length > 0 && { ports }) }];
  };
  const own = [...groups].map(([group, { config }]) => {
    requireNamed(config);
    const services = config.services?.flatMap(serviceOf);
    return [group, { config: { ...config, ...(services && { services }) } }] as const;
  });
  return { groups: new Map(own), closed: [...closed] };
}

function requireNamed({ mounts = [] }: MachineConfig): void {
  const id = mounts.map(volumeOf).find(isVolumeId);
  if (id === undefined) return;
  throw new CliError(
    "failed_precondition",
    `The app file mounts volume ${id}, and a preview never has a volume of another app. Write the volume's name as \`source\` under [[mounts]].`,
  );
}

/** Copies the volumes that the machines of the preview `app` are going to mount, unless it has them already. */
export async function copyVolumesTo(
  production: Context,
  app: string,
  groups: ReadonlyMap<string, { config: Pick<MachineConfig, "mounts"> }>,
): Promise<void> {
  const client = await production.client();
  const [volumes, machines, own] = await Promise.all([
    client.listVolumes(production.app),
    client.listMachines(production.app),
    client.listVolumes(app),
  ]);
  const left = [...own];
  for (const [group, { config }] of groups)
    for (const name of (config.mounts ?? []).map(volumeOf)) {
      const present = left.findIndex((volume) => volume.name === name);
      if (present >= 0) {
        production.say(`The preview has a volume ${name} already, which stays as it is.`);
        left.splice(present, 1);
        continue;
      }
      const source = sourceOf(name, group, { volumes, machines });
      if (source === undefined) {
        production.say(`${production.app} has no volume ${name}: that of the preview is empty.`);
        continue;
      }
      const { id, used_bytes: used, attached_machine_id: machine, host } = source;
      const label = `Copying volume ${id} (${name}, ${megabytes(used)}) of machine ${machine}`;
      await production.progress(label, client.createVolume(app, { name, source_volume_id: id, ...(host && { host }) }));
      production.say(`Copied volume ${id} (${name}) of ${production.app} to the preview.`);
    }
}

/** The volume of that name that a machine of the process group has: of several, that of the machine listed first. Pure. */
export function sourceOf(
  name: string,
  group: string,
  { volumes, machines }: { volumes: readonly Volume[]; machines: readonly Machine[] },
): Volume | undefined {
  for (const machine of machines.filter((each) => groupOf(each) === group)) {
    const found = volumes.find((volume) => volume.name === name && volume.attached_machine_id === machine.id);
    if (found !== undefined) return found;
  }
  return undefined;
}

function volumeOf({ volume, source }: NonNullable<MachineConfig["mounts"]>[number]): string {
  return volume ?? source ?? "";
}
