/** Records as the API shows them. */
import { liveLease, type MachineLease } from "@hibernaut/domain/lease";
import type { AppRecord, KeepAwake, MachineEvent, Origin, Prewarm } from "@hibernaut/domain/machine";
import { previewName } from "@hibernaut/domain/preview";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import type { MachineView, TemplateView } from "@hibernaut/machines";
import type { TokenRecord } from "@hibernaut/store";
import type { AppWire } from "./routes/apps.schemas.ts";
import type { TemplateWire } from "./routes/forks.schemas.ts";
import type { MachineEventWire, MachineWire } from "./routes/machines.schemas.ts";
import type { NewTokenWire, TokenWire } from "./routes/tokens.schemas.ts";
import type { CreatedToken } from "./tokens.ts";

/** A machine on the wire. */
export function machineWire({
  record,
  suspend,
  image,
  health,
  checks,
  guestBundle,
  nextRun,
  warmUntil,
  listening,
  host,
}: MachineView): MachineWire {
  const { snapshot } = record;
  const lease = record.state === "destroyed" ? null : liveLease(record.lease, new Date());
  return {
    machine_id: record.id,
    id: record.id,
    app_name: record.app,
    name: record.name,
    state: record.state,
    state_reason: record.stateReason,
    unreachable: record.state === "running" ? (record.unreachable ?? null) : null,
    ...(listening !== undefined && record.state === "running" && { listening: [...listening] }),
    cordoned: record.cordoned ?? false,
    region: record.region,
    ...(host !== undefined && { host, host_state: "up" as const }),
    version: record.version,
    config: record.config,
    image,
    guest_bundle: { ...guestBundle, update_pending: (record.bundleMove ?? null) !== null },
    suspend,
    health,
    checks,
    snapshot: snapshot && { created_at: snapshot.created_at, size_bytes: snapshot.size_bytes, warm_until: warmUntil },
    last_boot: record.lastBoot,
    prewarm: record.prewarm ? prewarmWire(record.prewarm) : null,
    keep_awake: keepAwakeWire(record.keepAwake),
    lease: lease && leaseWire(lease),
    next_run: nextRun,
    wake_at: record.wakeAt ?? null,
    // An app that runs has recovered, for all that is known.
    crash: record.state === "running" ? null : (record.crash ?? null),
    origin: originWire(record.origin),
    sandbox: sandboxWire(record.sandbox),
    private_address: record.address,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    ...(record.pending !== null && { updating: { version: record.pending.version, config: record.pending.config } }),
  };
}

function originWire(origin: Origin | undefined): MachineWire["origin"] {
  return origin === undefined
    ? null
    : { kind: origin.kind, machine_id: origin.machine, template: origin.template ?? null };
}

/** Neither what opens it, nor what its programs are told. */
function sandboxWire(sandbox: Sandbox | undefined): MachineWire["sandbox"] {
  if (sandbox === undefined) return null;
  const { template, metadata, started_at, ends_at, timeout_s, on_timeout, auto_resume } = sandbox;
  return { template, metadata, started_at, ends_at, timeout_s, on_timeout, auto_resume };
}

function prewarmWire({ status, until, reason, since }: Prewarm): MachineWire["prewarm"] {
  return { status, until, reason, since };
}

function keepAwakeWire(lease: KeepAwake | null | undefined): KeepAwake | null {
  return lease && Date.parse(lease.until) > Date.now() ? lease : null;
}

/** A lease on the wire, without its nonce. */
export function leaseWire({ owner, description, expiresAt }: MachineLease): NonNullable<MachineWire["lease"]> {
  return { expires_at: expiresAt, owner, description };
}

/** A template on the wire. */
export function templateWire({ template, machines, pool }: TemplateView, hosts?: readonly string[]): TemplateWire {
  const { id, app, name, createdAt, sizeBytes, machine } = template;
  return {
    id,
    app_name: app,
    name,
    image: { ref: machine.config.image, digest: machine.imageDigest },
    config: machine.config,
    machine_id: machine.id,
    machines,
    pool,
    size_bytes: sizeBytes,
    created_at: createdAt,
    ...(hosts !== undefined && { hosts: [...hosts] }),
  };
}

/** An event of a machine on the wire. */
export function eventWire({ at, type, from, to, details }: MachineEvent): MachineEventWire {
  return { at, type, from, to, details };
}

interface AppFacts {
  machineCount: number;
  urls: string[];
  closedPorts: NonNullable<AppWire["closed_ports"]>;
  sandboxPortUrl: string | undefined;
  /** Whether the caller may know of another app. */
  reaches(app: string): boolean;
}

/** An app on the wire. */
export function appWire(
  app: AppRecord,
  { machineCount, urls, closedPorts, sandboxPortUrl, reaches }: AppFacts,
): AppWire {
  const { name, createdAt, statusPage = false, network, preview } = app;
  return {
    ...{ name, created_at: createdAt, machine_count: machineCount, urls, status_page: statusPage },
    ...(network !== undefined && {
      network: { ...network, aliases: [...network.aliases], wakes: (network.wakes ?? []).filter(reaches) },
    }),
    ...(preview !== undefined && {
      preview: {
        of: preview.of,
        name: previewName({ name, preview }),
        expires_at: preview.expiresAt,
        expired: preview.expired === true,
      },
    }),
    ...(closedPorts.length > 0 && { closed_ports: closedPorts }),
    ...(sandboxPortUrl !== undefined && { sandbox_port_url: sandboxPortUrl }),
  };
}

/** A token on the wire: all but its secret. */
export function tokenWire(token: TokenRecord): TokenWire {
  return {
    id: token.id,
    name: token.name,
    scopes: [...token.scopes],
    apps: token.apps === null ? null : [...token.apps],
    ...(token.previewsOf && { previews_of: [...token.previewsOf] }),
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    revoked_at: token.revokedAt,
    last_used_at: token.lastUsedAt,
    replaced_by: token.replacedBy,
  };
}

/** A token that was just made, with its secret. */
export function newTokenWire({ record, token }: CreatedToken): NewTokenWire {
  const { id, name, scopes, apps, previews_of: of, created_at, expires_at } = tokenWire(record);
  return { id, name, token, scopes, apps, ...(of && { previews_of: of }), created_at, expires_at };
}
