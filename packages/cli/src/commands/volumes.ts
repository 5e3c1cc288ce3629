/** `hibernaut volumes` */
import type { Volume, VolumeSnapshot } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { listText, type ListOptions, QUIET } from "../listing.ts";
import { ago, fields, megabytes, table } from "../terminal.ts";

const ID = [
  {
    usage: "<id>",
    description: "the volume: id, the beginning of it with or without vol_, or the name if no other has it",
  },
];
const DEFAULT_SIZE_GB = 1;

const create = command<{ size?: number; snapshotId?: string; snapshotRetention?: number }>({
  name: "create",
  summary: "Make a volume",
  description: "A machine that mounts a volume of this name gets it, if no other machine has it.",
  arguments: [{ usage: "<name>", description: "name of the volume; several may have the same" }],
  options: [
    {
      flags: "-s, --size <size>",
      description: `size in GB, or with a unit: 2gb (default: the snapshot's, else ${DEFAULT_SIZE_GB})`,
      minimum: 1,
      unit: "gb",
    },
    { flags: "--snapshot-id <id>", description: "begin with what this snapshot of a volume holds" },
    {
      flags: "--snapshot-retention <days>",
      description: "how long its snapshots are kept (default: 5)",
      minimum: 1,
      unit: "days",
    },
  ],
  ofApp: true,
  examples: [
    "hibernaut volumes create data --size 2 --app shop",
    "hibernaut volumes create data --snapshot-id vs_0123456789abcdef --app shop",
  ],
  async run(context, [name = ""], { size, snapshotId, snapshotRetention }) {
    const client = await context.client();
    const making = client.createVolume(context.app, {
      name,
      ...(size !== undefined && { size_gb: size }),
      ...(snapshotId !== undefined && { snapshot_id: snapshotId }),
      ...(snapshotRetention !== undefined && { snapshot_retention: snapshotRetention }),
    });
    const volume = await context.progress(`Making volume ${name}`, making);
    const text = `Volume ${volume.id} (${name}, ${volume.size_gb} GB) is made. Mount it: hibernaut machine run <image> --volume ${name}:/data`;
    return { document: volume, text };
  },
});

const list = command<ListOptions>({
  name: "list",
  aliases: ["ls"],
  summary: "List the volumes of an app",
  options: [QUIET],
  ofApp: true,
  examples: ["hibernaut volumes list --app shop"],
  async run(context, _args, options) {
    const volumes = await (await context.client()).listVolumes(context.app);
    const listing = {
      head: ["ID", "NAME", "SIZE", "USED", "MACHINE", "STATE", "CREATED"],
      row: (volume: Volume) => [
        volume.id,
        volume.name,
        `${volume.size_gb} GB`,
        megabytes(volume.used_bytes),
        volume.attached_machine_id ?? "-",
        volume.state,
        ago(volume.created_at),
      ],
      id: (volume: Volume) => volume.id,
      empty: `App ${context.app} has no volumes.`,
    };
    return { document: volumes, text: listText(volumes, listing, options) };
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

const extend = command<{ size?: number }>({
  name: "extend",
  summary: "Make a volume larger",
  description: "Its machine has the new size from its next cold start on. A volume never becomes smaller.",
  arguments: ID,
  options: [
    { flags: "-s, --size <size>", description: "the new size in GB, or with a unit: 10gb", minimum: 1, unit: "gb" },
  ],
  ofApp: true,
  examples: ["hibernaut volumes extend vol_0123456789abcdef --size 10 --app shop"],
  async run(context, [word = ""], { size }) {
    if (size === undefined) throw new UsageError("No size is named. Add the new size: --size 10gb.");
    const { volume, needs_restart } = await (await context.client()).extendVolume(context.app, word, size);
    const { attached_machine_id: machine } = volume;
    const next = needs_restart ? ` Its machine sees that after: hibernaut machine restart ${machine}` : "";
    return { document: { volume, needs_restart }, text: `Volume ${volume.id} has ${size} GB.${next}` };
  },
});

const destroy = command<{ yes?: boolean }>({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy a volume with all that is on it, and its snapshots",
  description: "A volume that a machine has is not destroyed.",
  arguments: ID,
  options: [YES],
  ofApp: true,
  examples: ["hibernaut volumes destroy vol_0123456789abcdef --app shop"],
  async run(context, [word = ""], { yes = false }) {
    const client = await context.client();
    const { id, name, size_gb: size } = await client.getVolume(context.app, word);
    const { length } = await client.listVolumeSnapshots(context.app, id);
    const warning = `Volume ${id} (${name}, ${size} GB) and its ${length} snapshot(s) will be gone for good.`;
    await agree(warning, { yes, what: "destroyed" });
    await client.destroyVolume(context.app, id);
    return { document: { id, ok: true }, text: `Volume ${id} is gone.` };
  },
});

const snapshots = command({
  name: "snapshots",
  summary: "List, create or destroy the snapshots of a volume",
  description:
    "A snapshot is the volume as it is at that moment. It is deleted with its volume, and after the days that the volume keeps snapshots.",
  arguments: [
    { usage: "<what>", description: "list, create or destroy" },
    ...ID,
    { usage: "[snapshot]", description: "id of the snapshot to destroy" },
  ],
  ofApp: true,
  examples: [
    "hibernaut volumes snapshots create vol_0123456789abcdef --app shop",
    "hibernaut volumes snapshots list vol_0123456789abcdef --app shop",
    "hibernaut volumes snapshots destroy vol_0123456789abcdef vs_0123456789abcdef --app shop",
  ],
  async run(context, [what = "", word = "", snapshotId]) {
    if (!["list", "create", "destroy"].includes(what))
      throw new UsageError(`\`${what}\` is none of list, create and destroy.`);
    if (what === "destroy" && snapshotId === undefined)
      throw new UsageError("No snapshot is named. Add its id, from `volumes snapshots list`.");
    const client = await context.client();
    const { id } = await client.getVolume(context.app, word);
    if (what === "list") {
      const found = await client.listVolumeSnapshots(context.app, id);
      return { document: found, text: found.length === 0 ? `Volume ${id} has no snapshots.` : snapshotTable(found) };
    }
    if (what === "create") {
      const made = await context.progress(`Copying volume ${id}`, client.createVolumeSnapshot(context.app, id));
      const text = `Snapshot ${made.id} is made. Go back to it: hibernaut volumes create <name> --snapshot-id ${made.id}`;
      return { document: made, text };
    }
    await client.destroyVolumeSnapshot(context.app, id, snapshotId ?? "");
    return { document: { id: snapshotId, ok: true }, text: `Snapshot ${snapshotId} is gone.` };
  },
});

function volumeText(volume: Volume): string {
  return fields([
    ["id", volume.id],
    ["name", volume.name],
    ["size", `${volume.size_gb} GB, ${megabytes(volume.used_bytes)} used`],
    ["state", volume.state],
    ["machine", volume.attached_machine_id ?? "-"],
    ["snapshots kept", `${volume.snapshot_retention} d`],
    ["created", volume.created_at],
  ]);
}

function snapshotTable(found: readonly VolumeSnapshot[]): string {
  const rows = found.map((snapshot) => [
    snapshot.id,
    `${snapshot.volume_size} GB`,
    megabytes(snapshot.size),
    snapshot.status,
    ago(snapshot.created_at),
  ]);
  return table([["ID", "VOLUME", "ON DISK", "STATE", "CREATED"], ...rows]);
}

/** The commands about volumes. */
export const volumes: Noun = {
  name: "volumes",
  aliases: ["volume"],
  summary: "Disks that outlive machines",
  commands: [create, list, show, extend, destroy, snapshots],
};
