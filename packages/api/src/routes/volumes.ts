/** `/v1/apps/{app_name}/volumes`: disks that outlive machines, with Fly's field names. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { VolumeView } from "@hibernaut/volumes";
import type { Static } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { requireCluster } from "../require-cluster.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import {
  CreateVolumeBody,
  ExtendVolumeBody,
  ExtendVolumeReply,
  UpdateVolumeBody,
  VolumeList,
  VolumeParams,
  VolumeReply,
  VolumeSnapshotList,
  VolumeSnapshotParams,
  VolumeSnapshotReply,
  type VolumeSnapshotWire,
  type VolumeWire,
} from "./volumes.schemas.ts";

/** Registers the routes of volumes. */
export function volumeRoutes(
  app: Api,
  { volumes, platform, cluster }: Pick<ApiDeps, "volumes" | "platform" | "cluster">,
): void {
  const { region } = platform;
  const path = "/v1/apps/:app_name/volumes";
  const common = { tags: ["volumes"], querystring: NoQuery };
  const wire = async (volume: VolumeView) =>
    volumeWire(volume, { region, host: cluster?.shared.host, usedBytes: await volumes.usedBytes(volume) });

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: { ...common, summary: "List an app's volumes", params: AppParams, response: replies(200, VolumeList) },
    },
    async ({ params }) => Promise.all(volumes.list(params.app_name).map(wire)),
  );

  app.post(
    path,
    {
      config: { scope: "deploy", audited: ["name", "size_gb", "snapshot_id"] },
      schema: {
        ...common,
        summary: "Create a volume, empty or from a snapshot",
        params: AppParams,
        body: CreateVolumeBody,
        response: replies(201, VolumeReply),
      },
    },
    async ({ params, body }, reply) => {
      requireCluster({ cluster }, body.host);
      if (body.region !== undefined && body.region !== region)
        throw new HibernautError(
          "invalid_argument",
          `There is no region ${body.region} here; the only one is ${region}.`,
        );
      const { name, size_gb: sizeGb, snapshot_id: snapshotId } = body;
      const made = await volumes.create(params.app_name, { name, sizeGb, snapshotId, ...changesOf(body) });
      return reply.code(201).send(await wire(made));
    },
  );

  app.get(
    `${path}/:volume_id`,
    {
      config: { scope: "read" },
      schema: { ...common, summary: "Show a volume", params: VolumeParams, response: replies(200, VolumeReply) },
    },
    async ({ params }) => wire(volumes.get(params.app_name, params.volume_id)),
  );

  app.delete(
    `${path}/:volume_id`,
    {
      config: { scope: "admin" },
      schema: {
        ...common,
        summary: "Destroy a volume that belongs to no machine, with its snapshots",
        params: VolumeParams,
        response: replies(200, Ok),
      },
    },
    async ({ params }) => {
      await volumes.destroy(params.app_name, params.volume_id);
      return { ok: true as const };
    },
  );

  app.put(
    `${path}/:volume_id`,
    {
      config: { scope: "admin" },
      schema: {
        ...common,
        summary: "Change how snapshots of a volume are taken and kept",
        params: VolumeParams,
        body: UpdateVolumeBody,
        response: replies(200, VolumeReply),
      },
    },
    async ({ params, body }) => wire(volumes.update(params.app_name, params.volume_id, changesOf(body))),
  );

  app.put(
    `${path}/:volume_id/extend`,
    {
      config: { scope: "deploy", audited: ["size_gb"] },
      schema: {
        ...common,
        summary: "Extend a volume, from its machine's next cold start on",
        params: VolumeParams,
        body: ExtendVolumeBody,
        response: replies(200, ExtendVolumeReply),
      },
    },
    async ({ params, body }) => {
      const { volume, needsRestart } = volumes.extend(params.app_name, params.volume_id, body.size_gb);
      return { volume: await wire(volume), needs_restart: needsRestart };
    },
  );

  snapshotRoutes(app, { volumes });
}

function snapshotRoutes(app: Api, { volumes }: Pick<ApiDeps, "volumes">): void {
  const path = "/v1/apps/:app_name/volumes/:volume_id/snapshots";
  const common = { tags: ["volumes"], querystring: NoQuery };
  const wire = (snapshot: VolumeSnapshotRecord, { snapshotRetention }: VolumeView): VolumeSnapshotWire => ({
    id: snapshot.id,
    status: snapshot.state,
    size: snapshot.sizeBytes,
    volume_size: snapshot.sizeGb,
    retention_days: snapshotRetention,
    created_at: snapshot.createdAt,
  });

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        ...common,
        summary: "List a volume's snapshots, newest first",
        params: VolumeParams,
        response: replies(200, VolumeSnapshotList),
      },
    },
    async ({ params: { app_name: name, volume_id: id } }) => {
      const volume = volumes.get(name, id);
      return (await volumes.listSnapshots(name, id)).map((snapshot) => wire(snapshot, volume));
    },
  );

  app.post(
    path,
    {
      config: { scope: "deploy" },
      schema: {
        ...common,
        summary: "Create a snapshot of a volume",
        params: VolumeParams,
        response: replies(201, VolumeSnapshotReply),
      },
    },
    async ({ params: { app_name: name, volume_id: id } }, reply) =>
      reply.code(201).send(wire(await volumes.snapshot(name, id), volumes.get(name, id))),
  );

  app.delete(
    `${path}/:snapshot_id`,
    {
      config: { scope: "admin" },
      schema: {
        ...common,
        summary: "Delete a snapshot of a volume",
        params: VolumeSnapshotParams,
        response: replies(200, Ok),
      },
    },
    async ({ params }) => {
      await volumes.destroySnapshot(params.app_name, params.volume_id, params.snapshot_id);
      return { ok: true as const };
    },
  );
}

function changesOf({
  snapshot_retention: snapshotRetention,
  auto_backup_enabled: scheduledSnapshots,
}: Static<typeof UpdateVolumeBody>) {
  return { snapshotRetention, scheduledSnapshots };
}

function volumeWire(
  { id, name, state, sizeGb, machineId, newerOn, snapshotRetention, schedule = null, createdAt }: VolumeView,
  { region, host, usedBytes }: { region: string; host: string | undefined; usedBytes: number },
): VolumeWire {
  return {
    id,
    name,
    state,
    size_gb: sizeGb,
    used_bytes: usedBytes,
    region,
    ...(host !== undefined && { host }),
    ...(newerOn !== undefined && { newer_on: newerOn }),
    encrypted: false,
    attached_machine_id: machineId,
    snapshot_retention: snapshotRetention,
    auto_backup_enabled: schedule !== null,
    last_scheduled_snapshot_at: schedule?.latest?.at ?? null,
    scheduled_snapshot_error: schedule?.trouble?.reason ?? null,
    created_at: createdAt,
  };
}
