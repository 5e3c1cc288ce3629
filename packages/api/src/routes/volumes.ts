/** `/v1/apps/{app_name}/volumes`: disks that outlive machines, with Fly's field names. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { VolumeView } from "@hibernaut/volumes";
import type { Static } from "typebox";
import { requireReach } from "../access.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { requireCluster } from "../require-cluster.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
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

const route = routesOf("volumes");

/** Registers the routes of volumes. */
export function volumeRoutes(
  app: Api,
  { volumes, platform, cluster }: Pick<ApiDeps, "volumes" | "platform" | "cluster">,
): void {
  const { region } = platform;
  const path = "/v1/apps/:app_name/volumes";
  const wire = async (volume: VolumeView) =>
    volumeWire(volume, { region, host: cluster?.shared.host, usedBytes: await volumes.usedBytes(volume) });

  app.get(
    path,
    route("List an app's volumes", { scope: "read" }, { params: AppParams, reply: VolumeList }),
    async ({ params }) => Promise.all(volumes.list(params.app_name).map(wire)),
  );

  app.post(
    path,
    route(
      "Create a volume: empty, from a snapshot, or as a copy of another volume",
      { scope: "deploy", audited: ["name", "size_gb", "snapshot_id", "source_volume_id"] },
      { params: AppParams, body: CreateVolumeBody, created: VolumeReply },
    ),
    async ({ token, params, body }, reply) => {
      requireCluster({ cluster }, body.host);
      if (body.region !== undefined && body.region !== region)
        throw new HibernautError(
          "invalid_argument",
          `There is no region ${body.region} here; the only one is ${region}.`,
        );
      const { name, size_gb: sizeGb, snapshot_id: snapshotId, source_volume_id: sourceId } = body;
      // Someone who may change a preview may not read what its production has stored.
      if (sourceId !== undefined) requireReach(token, volumes.source(params.app_name, sourceId).app);
      const made = await volumes.create(params.app_name, { name, sizeGb, snapshotId, sourceId, ...changesOf(body) });
      return reply.code(201).send(await wire(made));
    },
  );

  app.get(
    `${path}/:volume_id`,
    route("Show a volume", { scope: "read" }, { params: VolumeParams, reply: VolumeReply }),
    async ({ params }) => wire(volumes.get(params.app_name, params.volume_id)),
  );

  app.delete(
    `${path}/:volume_id`,
    route(
      "Destroy a volume that belongs to no machine, with its snapshots",
      { scope: "admin" },
      { params: VolumeParams, reply: Ok },
    ),
    async ({ params }) => {
      await volumes.destroy(params.app_name, params.volume_id);
      return { ok: true as const };
    },
  );

  app.put(
    `${path}/:volume_id`,
    route(
      "Change how snapshots of a volume are taken and kept",
      { scope: "admin" },
      { params: VolumeParams, body: UpdateVolumeBody, reply: VolumeReply },
    ),
    async ({ params, body }) => wire(volumes.update(params.app_name, params.volume_id, changesOf(body))),
  );

  app.put(
    `${path}/:volume_id/extend`,
    route(
      "Extend a volume, from its machine's next cold start on",
      { scope: "deploy", audited: ["size_gb"] },
      { params: VolumeParams, body: ExtendVolumeBody, reply: ExtendVolumeReply },
    ),
    async ({ params, body }) => {
      const { volume, needsRestart } = volumes.extend(params.app_name, params.volume_id, body.size_gb);
      return { volume: await wire(volume), needs_restart: needsRestart };
    },
  );

  snapshotRoutes(app, { volumes });
}

function snapshotRoutes(app: Api, { volumes }: Pick<ApiDeps, "volumes">): void {
  const path = "/v1/apps/:app_name/volumes/:volume_id/snapshots";
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
    route(
      "List a volume's snapshots, newest first",
      { scope: "read" },
      { params: VolumeParams, reply: VolumeSnapshotList },
    ),
    async ({ params: { app_name: name, volume_id: id } }) => {
      const volume = volumes.get(name, id);
      return (await volumes.listSnapshots(name, id)).map((snapshot) => wire(snapshot, volume));
    },
  );

  app.post(
    path,
    route("Create a snapshot of a volume", { scope: "deploy" }, { params: VolumeParams, created: VolumeSnapshotReply }),
    async ({ params: { app_name: name, volume_id: id } }, reply) =>
      reply.code(201).send(wire(await volumes.snapshot(name, id), volumes.get(name, id))),
  );

  app.delete(
    `${path}/:snapshot_id`,
    route("Delete a snapshot of a volume", { scope: "admin" }, { params: VolumeSnapshotParams, reply: Ok }),
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
