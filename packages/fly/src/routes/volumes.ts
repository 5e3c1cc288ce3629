/** Volumes and their snapshots. */

import { given } from "@hibernaut/lib/given";
import { Type } from "typebox";
import { path } from "../ask.ts";
import { Refusal } from "../failure.ts";
import { volumeView } from "../view/others.ts";
import type { PlatformVolume } from "../view/platform.ts";
import type { Call, Routes } from "./table.ts";

const VOLUMES = "/apps/:app_name/volumes";
const VOLUME = `${VOLUMES}/:volume_id`;
const at = ({ of }: Call) => path`/v1/apps/${of("app_name")}/volumes/${of("volume_id")}`;

const UpdateBody = Type.Object({
  snapshot_retention: Type.Optional(Type.Integer()),
  auto_backup_enabled: Type.Optional(Type.Boolean()),
});
const CreateBody = Type.Object({
  ...UpdateBody.properties,
  name: Type.String(),
  size_gb: Type.Optional(Type.Integer()),
  snapshot_id: Type.Optional(Type.String()),
  source_volume_id: Type.Optional(Type.String()),
  fstype: Type.Optional(Type.String()),
});
const ExtendBody = Type.Object({ size_gb: Type.Integer() });

export function volumeRoutes(route: Routes): void {
  route("GET", VOLUMES, {}, async ({ ask, of }) =>
    ((await ask("GET", path`/v1/apps/${of("app_name")}/volumes`)) as PlatformVolume[]).map(volumeView),
  );

  route("POST", VOLUMES, { body: CreateBody }, async ({ ask, of, body }) => {
    const { name, size_gb, snapshot_id, source_volume_id, fstype = "ext4", ...others } = body;
    if (source_volume_id !== undefined)
      throw new Refusal(501, "Volumes are not forked: take a snapshot, and send its id as `snapshot_id`.");
    if (fstype !== "ext4" && fstype !== "") throw new Refusal(501, "All volumes have ext4 as their file system.");
    const { snapshot_retention, auto_backup_enabled } = others;
    const wanted = given({ name, size_gb, snapshot_id, snapshot_retention, auto_backup_enabled });
    return volumeView((await ask("POST", path`/v1/apps/${of("app_name")}/volumes`, wanted)) as PlatformVolume);
  });

  const show = async (call: Call) => volumeView((await call.ask("GET", at(call))) as PlatformVolume);
  route("GET", VOLUME, {}, show);

  for (const method of ["PUT", "POST"] as const)
    route(method, VOLUME, { body: UpdateBody }, async (call) => {
      const { snapshot_retention, auto_backup_enabled } = call.body;
      const wanted = given({ snapshot_retention, auto_backup_enabled });
      return volumeView((await call.ask("PUT", at(call), wanted)) as PlatformVolume);
    });

  route("PUT", `${VOLUME}/extend`, { body: ExtendBody }, async (call) => {
    const extended = (await call.ask("PUT", `${at(call)}/extend`, { size_gb: call.body.size_gb })) as {
      volume: PlatformVolume;
      needs_restart: boolean;
    };
    return { volume: volumeView(extended.volume), needs_restart: extended.needs_restart };
  });

  // Clients read what it was.
  route("DELETE", VOLUME, {}, async (call) => {
    const volume = await show(call);
    await call.ask("DELETE", at(call));
    return { ...volume, state: "destroying" };
  });

  route("GET", `${VOLUME}/snapshots`, {}, async (call) => call.ask("GET", `${at(call)}/snapshots`));
  route("POST", `${VOLUME}/snapshots`, {}, async (call) => call.ask("POST", `${at(call)}/snapshots`));
}
