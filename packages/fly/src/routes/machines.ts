/** `/v1/apps/{app}/machines`: to make, see, change and destroy machines. */
import { isVolumeId } from "@hibernaut/domain/naming";
import { Type } from "typebox";
import { type Ask, path } from "../ask.ts";
import { carriedOver, choosable } from "../config/carried.ts";
import { keeping, withoutKept } from "../config/kept.ts";
import { normalised } from "../config/normalised.ts";
import { FlyConfig } from "../config/schema.ts";
import { Refusal } from "../failure.ts";
import { eventsView, machineView } from "../view/machine.ts";
import { withVolumes } from "../view/mounts.ts";
import type { PlatformEvent, PlatformMachine, PlatformVolume } from "../view/platform.ts";
import { asking, flag, textsOf } from "./query.ts";
import type { Routes } from "./table.ts";

const MACHINES = "/apps/:app_name/machines";
const MACHINE = `${MACHINES}/:machine_id`;

const LaunchBody = Type.Object({
  config: Type.Optional(FlyConfig),
  name: Type.Optional(Type.String()),
  region: Type.Optional(Type.String()),
  skip_launch: Type.Optional(Type.Boolean()),
  skip_service_registration: Type.Optional(Type.Boolean()),
  lease_ttl: Type.Optional(Type.Integer()),
  current_version: Type.Optional(Type.String()),
});

const DestroyBody = Type.Object({ force: Type.Optional(Type.Boolean()), kill: Type.Optional(Type.Boolean()) });

/** How many entries of the history a machine is shown with, and a list of them has unless it is asked for more: as many as on Fly. */
const EVENTS_SHOWN = 20;
const EVENTS_MOST = 50;

export function machineRoutes(route: Routes): void {
  route("GET", MACHINES, {}, async ({ ask, of, query }) => {
    const filters = Object.entries(query).filter(([key]) => key.startsWith("metadata.") || key === "state");
    const search = new URLSearchParams(
      filters.flatMap(([key, value]) => textsOf(value).map((text): [string, string] => [key, platformWord(key, text)])),
    );
    const all = (await ask("GET", asking(path`/v1/apps/${of("app_name")}/machines`, search))) as PlatformMachine[];
    return all.map((machine) => machineView(machine));
  });

  route("POST", MACHINES, { body: LaunchBody }, async ({ ask, of, body }) => {
    const { config, name, skip_launch, skip_service_registration, lease_ttl } = body;
    // The region is passed over: there is one, whatever a program written for Fly says.
    const wanted = {
      config: choosable(keeping(normalised(required(config)))),
      ...(name !== undefined && name !== "" && { name }),
      ...(skip_launch !== undefined && { skip_launch }),
      ...(skip_service_registration !== undefined && { skip_service_registration }),
      ...(lease_ttl !== undefined && lease_ttl > 0 && { lease_ttl }),
    };
    const made = (await ask("POST", path`/v1/apps/${of("app_name")}/machines`, wanted)) as PlatformMachine;
    return inFull(ask, made);
  });

  route("GET", MACHINE, {}, async ({ ask, of }) =>
    inFull(ask, (await ask("GET", path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}`)) as PlatformMachine),
  );

  route("POST", MACHINE, { body: LaunchBody }, async ({ ask, of, body }) => {
    const { config, skip_launch = false, current_version: known } = body;
    const at = path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}`;
    const now = (await ask("GET", at)) as PlatformMachine;
    // As the client sees it: an update that is under way counts.
    const { version, config: present } = now.updating ?? now;
    if (known !== undefined && known !== "") requireVersion(version, known);
    const wanted = choosable(carriedOver(present, keeping(normalised(required(config)))));
    const updated = (await ask("POST", at, { config: wanted })) as PlatformMachine;
    // There, an update ends with a machine that runs.
    const sleeps = ["created", "stopped", "suspended", "failed"].includes(updated.state);
    if (sleeps && !skip_launch) await ask("POST", `${at}/start`);
    return inFull(ask, sleeps && !skip_launch ? ((await ask("GET", at)) as PlatformMachine) : updated);
  });

  // Most clients say so in the query, and some in a body.
  route("DELETE", MACHINE, { body: DestroyBody }, async ({ ask, of, query, body }) => {
    const forced = [query["force"], query["kill"], body.force, body.kill].some(flag);
    const at = path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}`;
    await ask("DELETE", `${at}${forced ? "?force=true" : ""}`);
    return { ok: true };
  });

  route("GET", `${MACHINE}/events`, {}, async ({ ask, of, query }) => {
    const limit = Math.min(
      EVENTS_MOST,
      Math.max(1, Math.trunc(Number(query["limit"] ?? EVENTS_SHOWN)) || EVENTS_SHOWN),
    );
    const at = path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}/events`;
    return eventsView((await ask("GET", `${at}?limit=${limit}`)) as PlatformEvent[]);
  });

  // Only the present one is kept.
  route("GET", `${MACHINE}/versions`, {}, async ({ ask, of }) => {
    const machine = (await ask(
      "GET",
      path`/v1/apps/${of("app_name")}/machines/${of("machine_id")}`,
    )) as PlatformMachine;
    const { version, config } = machineView(machine);
    return [{ version, user_config: config }];
  });
}

function required(config: FlyConfig | undefined): FlyConfig {
  if (config === undefined) throw new Refusal(400, "invalid_argument: config is missing.");
  requireOwnVolumes(config);
  return withoutKept(config);
}

/** Fly's word for a state that has another name here. */
function platformWord(key: string, text: string): string {
  return key === "state" && text === "started" ? "running" : text;
}

/**
 * Throws for an id of a volume that cannot be one of this platform's. It would be taken for the name of a volume to make, and a program
 * that came with its ids from Fly would find an empty disk in the place of its data.
 */
function requireOwnVolumes({ mounts = [] }: FlyConfig): void {
  const foreign = mounts.find(({ volume = "" }) => volume.startsWith("vol_") && !isVolumeId(volume))?.volume;
  if (foreign !== undefined)
    throw new Refusal(
      404,
      `volume not found: There is no volume ${foreign.slice(0, 64)} here. Make one first, or mount another.`,
    );
}

function requireVersion(version: string, known: string): void {
  if (version !== known)
    throw new Refusal(
      412,
      `failed_precondition: The machine has version ${version}, not ${known.slice(0, 64)}. Read it again.`,
    );
}

/** Lists have neither events nor volumes: each machine would be a request more. */
async function inFull(ask: Ask, machine: PlatformMachine) {
  const app = path`/v1/apps/${machine.app_name}`;
  const events = await ask("GET", `${app}${path`/machines/${machine.id}/events`}?limit=${EVENTS_SHOWN}`);
  const view = machineView(machine, events as PlatformEvent[]);
  if (view.config["mounts"] === undefined) return view;
  const volumes = (await ask("GET", `${app}/volumes`)) as PlatformVolume[];
  return { ...view, config: withVolumes(view.config, volumes) };
}
