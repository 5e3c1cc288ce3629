/** `hibernaut volumes` */
import type { Volume, VolumeSnapshot } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { LISTING, listCommand, listText } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { ago, fields, megabytes } from "../terminal.ts";

const ID = [
  {
    usage: "<id>",
    names: "volume" as const,
    description: "the volume: id, beginning of the id with or without vol_, or name if it is unique",
  },
];
const DEFAULT_SIZE_GB = 1;

const RETENTION = { flags: "--snapshot-retention <days>", minimum: 1, unit: "days" } as const;
const SCHEDULED = { flags: "--scheduled-snapshots [on]", choices: ["true", "false"] } as const;

const create = command({
  name: "create",
  summary: "Create a volume",
  description: "A machine that mounts a volume of this name gets this one, unless another machine has it.",
  arguments: [{ usage: "<name>", description: "name of the volume; several volumes can share a name" }],
  options: [
    {
      flags: "-s, --size <size>",
      description: `size in GB, or with a unit as in 2gb (default: the snapshot's size, or ${DEFAULT_SIZE_GB})`,
      minimum: 1,
      unit: "gb",
    },
    { flags: "--snapshot-id <id>", description: "start with the content of this volume snapshot" },
    { flags: "--host <host>", description: "in a cluster, the host to keep the volume on (default: one is chosen)" },
    { ...RETENTION, description: "how many days its snapshots are kept (default: 5)" },
    {
      ...SCHEDULED,
      description:
        "whether the platform takes snapshots by itself (default: if the host's file system can clone files)",
    },
  ],
  ofApp: true,
  examples: [
    "hibernaut volumes create data --size 2 --app shop",
    "hibernaut volumes create data --snapshot-id vs_0123456789abcdef --app shop",
  ],
  async run(context, [name = ""], { size, snapshotId, host, snapshotRetention, scheduledSnapshots }) {
    const client = await context.client();
    const making = client.createVolume(context.app, {
      name,
      ...given({ size_gb: size, snapshot_id: snapshotId, host }),
      ...snapshotChanges(snapshotRetention, scheduledSnapshots),
    });
    const volume = await context.progress(`Creating volume ${name}`, making);
    const text = `Created volume ${volume.id} (${name}, ${volume.size_gb} GB). Mount it: hibernaut machine run <image> --volume ${name}:/data`;
    return { document: volume, text };
  },
});

const list = listCommand({
  summary: "List the volumes of an app",
  ofApp: true,
  examples: ["hibernaut volumes list --app shop", "hibernaut volumes list -o wide --app shop"],
  fetch: (client, { app }) => client.listVolumes(app),
  show: ({ app }, volumes) => {
    const clustered = volumes.some(({ host }) => host !== undefined);
    return {
      head: ["ID", "NAME", ...(clustered ? ["HOST"] : []), "SIZE", "USED", "MACHINE", "STATE", "CREATED"],
      row: (volume) => [
        volume.id,
        volume.name,
        ...(clustered ? [volume.host ?? ""] : []),
        `${volume.size_gb} GB`,
        megabytes(volume.used_bytes),
        volume.attached_machine_id ?? "-",
        volume.newer_on === undefined ? volume.state : "outdated",
        ago(volume.created_at),
      ],
      wide: {
        head: ["REGION", "SNAPSHOTS KEPT", "SCHEDULED SNAPSHOTS"],
        row: (volume) => [volume.region, `${volume.snapshot_retention} d`, scheduleText(volume)],
      },
      spare: ["CREATED", "STATE"],
      id: ({ id }) => id,
      empty: `App ${app} has no volumes.`,
    };
  },
});

const show = command({
  name: "show",
  summary: "Show a volume",
  arguments: ID,
  ofApp: true,
  examples: ["hibernaut volumes show vol_0123456789abcdef --app shop"],
  async run(context, [id = ""]) {
    const volume = await (await context.client()).getVolume(context.app, id);
    return { document: volume, text: volumeText(volume) };
  },
});

const extend = command({
  name: "extend",
  summary: "Extend a volume",
  description: "Its machine sees the new size after its next cold start. A volume cannot shrink.",
  arguments: ID,
  options: [
    {
      flags: "-s, --size <size>",
      description: "the new size in GB, or with a unit as in 10gb",
      minimum: 1,
      unit: "gb",
    },
  ],
  ofApp: true,
  examples: ["hibernaut volumes extend vol_0123456789abcdef --size 10 --app shop"],
  async run(context, [word = ""], { size }) {
    if (size === undefined) throw new UsageError("No size. Add the new size, as in --size 10gb.");
    const { volume, needs_restart } = await (await context.client()).extendVolume(context.app, word, size);
    const { attached_machine_id: machine } = volume;
    const next = needs_restart ? ` Its machine sees the new size after: hibernaut machine restart ${machine}` : "";
    return { document: { volume, needs_restart }, text: `Volume ${volume.id} now has ${size} GB.${next}` };
  },
});

const update = command({
  name: "update",
  summary: "Change how snapshots of a volume are taken and kept",
  arguments: ID,
  options: [
    { ...RETENTION, description: "how many days its snapshots are kept, also those that there are" },
    { ...SCHEDULED, description: "whether the platform takes snapshots by itself" },
  ],
  ofApp: true,
  examples: [
    "hibernaut volumes update vol_0123456789abcdef --snapshot-retention 7 --app shop",
    "hibernaut volumes update vol_0123456789abcdef --scheduled-snapshots=false --app shop",
  ],
  async run(context, [word = ""], { snapshotRetention, scheduledSnapshots }) {
    const changes = snapshotChanges(snapshotRetention, scheduledSnapshots);
    if (Object.keys(changes).length === 0)
      throw new UsageError("No change. Add --snapshot-retention <days> or --scheduled-snapshots=true or =false.");
    const volume = await (await context.client()).updateVolume(context.app, word, changes);
    return { document: volume, text: `Updated volume ${volume.id}. Snapshots: ${snapshotsText(volume)}.` };
  },
});

const destroy = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy a volume with its data and its snapshots",
  description: "A volume that belongs to a machine is not destroyed.",
  arguments: ID,
  options: [YES],
  ofApp: true,
  examples: ["hibernaut volumes destroy vol_0123456789abcdef --app shop"],
  async run(context, [word = ""], { yes = false }) {
    const client = await context.client();
    const { id, name, size_gb: size, host } = await client.getVolume(context.app, word);
    // Two hosts may have copies of one volume: the answer says whose will be deleted.
    const where = host === undefined ? "" : ` on host ${host}`;
    const { length } = await client.listVolumeSnapshots(context.app, id);
    const warning = `Volume ${id} (${name}, ${size} GB)${where} and its ${length} snapshot(s) will be deleted permanently.`;
    await agree(warning, { yes, what: "destroyed" });
    await client.destroyVolume(context.app, id);
    return { document: { id, ok: true }, text: `Destroyed volume ${id}.` };
  },
});

const listSnapshots = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the snapshots of a volume",
  arguments: ID,
  options: LISTING,
  ofApp: true,
  examples: ["hibernaut volumes snapshots list vol_0123456789abcdef --app shop"],
  async run(context, [word = ""], options) {
    const client = await context.client();
    const { id } = await client.getVolume(context.app, word);
    const found = await client.listVolumeSnapshots(context.app, id);
    const listing = {
      head: ["ID", "VOLUME", "ON DISK", "STATE", "CREATED"],
      row: (snapshot: VolumeSnapshot) => [
        snapshot.id,
        `${snapshot.volume_size} GB`,
        megabytes(snapshot.size),
        snapshot.status,
        ago(snapshot.created_at),
      ],
      id: (snapshot: VolumeSnapshot) => snapshot.id,
      empty: `Volume ${id} has no snapshots.`,
    };
    return { document: found, text: listText(found, listing, options) };
  },
});

const createSnapshot = command({
  name: "create",
  summary: "Take a snapshot of a volume",
  description: "It is deleted with the volume, or after the number of days that the volume keeps snapshots.",
  arguments: ID,
  ofApp: true,
  examples: ["hibernaut volumes snapshots create vol_0123456789abcdef --app shop"],
  async run(context, [word = ""]) {
    const client = await context.client();
    const { id } = await client.getVolume(context.app, word);
    const made = await context.progress(`Copying volume ${id}`, client.createVolumeSnapshot(context.app, id));
    const text = `Created snapshot ${made.id}. To go back to it: hibernaut volumes create <name> --snapshot-id ${made.id}`;
    return { document: made, text };
  },
});

const destroySnapshot = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy a snapshot of a volume",
  arguments: [...ID, { usage: "<snapshot>", description: "the id of the snapshot" }],
  ofApp: true,
  examples: ["hibernaut volumes snapshots destroy vol_0123456789abcdef vs_0123456789abcdef --app shop"],
  async run(context, [word = "", snapshotId = ""]) {
    const client = await context.client();
    const { id } = await client.getVolume(context.app, word);
    await client.destroyVolumeSnapshot(context.app, id, snapshotId);
    return { document: { id: snapshotId, ok: true }, text: `Destroyed snapshot ${snapshotId}.` };
  },
});

function volumeText(volume: Volume): string {
  return fields([
    ["id", volume.id],
    ["name", volume.name],
    ["host", volume.host],
    ["size", `${volume.size_gb} GB, ${megabytes(volume.used_bytes)} used`],
    ["state", volume.newer_on === undefined ? volume.state : `outdated: host ${volume.newer_on} has a newer copy`],
    ["machine", volume.attached_machine_id ?? "-"],
    ["snapshots kept", `${volume.snapshot_retention} d`],
    ["scheduled snapshots", scheduleText(volume)],
    ["created", localTime(volume.created_at)],
  ]);
}

function snapshotChanges(retention: number | undefined, scheduled: "true" | "false" | undefined) {
  return given({ snapshot_retention: retention, auto_backup_enabled: scheduled && scheduled === "true" });
}

function snapshotsText(volume: Volume): string {
  return `${volume.auto_backup_enabled ? "scheduled" : "not scheduled"}, kept for ${volume.snapshot_retention} days`;
}

function scheduleText({
  auto_backup_enabled: on,
  last_scheduled_snapshot_at: last,
  scheduled_snapshot_error: error,
}: Volume): string {
  if (!on) return "off";
  const taken = last === null ? "none yet" : `last ${ago(last)}`;
  return error === null ? taken : `${taken}; one is due: ${error}`;
}

export const volumes: Noun = {
  name: "volumes",
  aliases: ["volume", "vol"],
  summary: "Manage volumes",
  commands: [create, list, show, update, extend, destroy],
  nouns: [
    {
      name: "snapshots",
      aliases: ["snapshot"],
      summary: "Manage the snapshots of a volume",
      commands: [listSnapshots, createSnapshot, destroySnapshot],
    },
  ],
};
