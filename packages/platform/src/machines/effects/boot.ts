/** Starting a machine: from its snapshot where there is one that fits, else from scratch. */
import { HibernautError, isHibernautError } from "../../domain/errors.ts";
import type { GuestAgent } from "../../guest/agent.ts";
import { type Vmm, VmmKilled, type VmmSpec } from "../../hypervisor/contract.ts";
import type { Image } from "../../images/contract.ts";
import type { FittingSnapshot } from "../../snapshots/store.ts";
import { messageOf } from "../../lib/text.ts";
import { freeAddress } from "../address.ts";
import { guestSize, servicePorts } from "../../domain/config.ts";
import { guestConfigOf } from "../environment.ts";
import type { LastBoot, MachineRecord, SnapshotRecord } from "../../domain/machine.ts";
import { type EffectContext, type EffectResult, originOf, within } from "./context.ts";
import { runHooks } from "./hooks.ts";

/** The reason of a cold start after a resume that platform and guest did not live to see the end of. */
const LOST = "resume_lost";
/** What stands in `coldReason` from the moment a snapshot is consumed until the next one is taken. */
export const CONSUMED = "snapshot_consumed";
/** A guest that was killed is started again within the same start: the third time it is no accident. */
const MOST_TRIES = 3;

export async function boot(context: EffectContext): Promise<EffectResult> {
  const { deps } = context;
  const began = performance.now();
  const booted = (kind: LastBoot["kind"], reason: string): Partial<MachineRecord> => {
    const unreachable = context.live?.reachability.why ?? null;
    const at = new Date().toISOString();
    const lastBoot = { kind, reason, at, duration_ms: Math.round(performance.now() - began) };
    return { lastBoot, stateReason: unreachable, unreachable };
  };
  for (let tries = 1; ; tries += 1) {
    try {
      return told(await bootOnce(context, booted));
    } catch (error) {
      const killed = !context.signal.aborted && (await wasKilled(context, error));
      await context.kill();
      const reason = messageOf(error);
      if (!killed || tries === MOST_TRIES)
        return { outcome: "start_failed", patch: { stateReason: reason }, details: { reason } };
      deps.log.warn({ machine: context.record.id, reason, tries }, "a guest was killed while it started; trying again");
      context.machineLog.platform("Its virtual machine was killed while it started; it is started again.");
    }
  }
}

async function bootOnce(context: EffectContext, booted: Booted): Promise<EffectResult> {
  if (context.live !== undefined) return goOn(context, booted);
  const resumed = await resume(context);
  if ("reason" in resumed)
    return context.deps.bootSlots.run(() => coldStart(context, resumed.reason, booted), context.signal);
  const { after, details } = resumed;
  return { outcome: "started", patch: booted("resume", "snapshot"), details, after };
}

/** Whether the virtual machine is gone that we did not end: no fault of the start itself. */
async function wasKilled({ live }: EffectContext, error: unknown): Promise<boolean> {
  if (error instanceof VmmKilled) return true;
  return (
    live !== undefined &&
    live.vmm.state().then(
      () => false,
      () => true,
    )
  );
}

/** The machine's history says how it was started and how long that took. */
function told(result: EffectResult): EffectResult {
  const last = result.patch?.lastBoot;
  if (!last || result.outcome !== "started") return result;
  return { ...result, details: { kind: last.kind, duration_ms: last.duration_ms, ...result.details } };
}

type Booted = (kind: LastBoot["kind"], reason: string) => Partial<MachineRecord>;

/** Tries the snapshot. Answers with the reason when the start has to be cold. */
async function resume(
  context: EffectContext,
): Promise<{ after(): Promise<void>; details: Record<string, unknown> } | { reason: string }> {
  const { deps, record } = context;
  if (record.snapshot === null) return { reason: record.coldReason === CONSUMED ? LOST : record.coldReason };
  const { generation } = record.snapshot;
  const after = () => deps.snapshots.discard(record.id, generation);
  const useless = async (reason: string) => {
    context.patch({ snapshot: null, coldReason: reason });
    await after();
    return { reason };
  };
  const snapshot = await fittingSnapshot(context, record.snapshot);
  if (typeof snapshot === "string") return useless(snapshot);
  try {
    const limit = within(context.signal, deps.settings.resumeTimeoutMs, "the resume");
    const vmm = await load(context, snapshot, limit);
    if (typeof vmm === "string") return await useless(vmm);
    const { agent } = await context.attach(vmm);
    // From here on the snapshot is spent, whatever happens: it must be stored before the guest runs.
    context.patch({ snapshot: null, coldReason: CONSUMED });
    const stoodMs = snapshot.clockMs === undefined ? undefined : Date.now() - snapshot.clockMs;
    await vmm.run();
    const { hooks, clockOffMs } = await agent.awake(limit, stoodMs);
    deps.log.info({ machine: record.id, clockOffMs }, "the guest is awake");
    const sleptMs = Date.now() - Date.parse(record.snapshot.created_at);
    context.inside.started("resume", sleptMs);
    const failed = hooks ? await runHooks(context, "post-resume", deps.settings.hookTimeoutMs) : undefined;
    if (failed !== undefined) deps.log.warn({ machine: record.id, reason: failed }, "the machine goes on all the same");
    return { after, details: { slept_ms: sleptMs, ...(failed !== undefined && { hooks: failed }) } };
  } catch (error) {
    const killed = context.record.snapshot !== null && (await wasKilled(context, error));
    await context.kill();
    // QEMU that cannot even be started (no memory, a port that is taken), or was killed before its guest ran, says
    // nothing about the snapshot: it is kept for the next try, and a cold start now would fail the same way.
    if (context.signal.aborted || isHibernautError(error, "unavailable")) throw error;
    if (killed) throw new VmmKilled(messageOf(error));
    const reason = `resume_failed: ${messageOf(error)}`;
    deps.log.warn({ machine: record.id, reason }, "a resume failed; starting cold");
    return useless(reason);
  }
}

/** Loads a snapshot, and looks at its files meanwhile: nothing of it runs yet. Answers with a flaw if they have one. */
async function load(context: EffectContext, snapshot: FittingSnapshot, limit: AbortSignal): Promise<Vmm | string> {
  const useless = new AbortController();
  const loaded = restore(context, snapshot, AbortSignal.any([limit, useless.signal]));
  loaded.catch(() => {}); // a flaw, if there is one, explains it better
  const flaw = await snapshot.flaw();
  if (flaw === undefined) return loaded;
  useless.abort(new Error(flaw));
  await loaded.then(
    (vmm) => vmm.kill(),
    () => {},
  );
  return flaw;
}

async function restore(context: EffectContext, { generation, devices }: FittingSnapshot, limit: AbortSignal) {
  const { deps, record } = context;
  await deps.files.prepare(record.id);
  await deps.snapshots.stage(record.id, generation);
  const { spec } = await specOf(context, { cold: false });
  return deps.hypervisor.restore(spec, devices, limit);
}

/** The snapshot, or why it does not fit. */
async function fittingSnapshot(
  { deps, record }: EffectContext,
  { generation, secrets = "" }: SnapshotRecord,
): Promise<FittingSnapshot | string> {
  if (!deps.network.owns(record.address))
    return `network_changed: ${record.address} is no address of the present network`;
  // It was discarded when they changed, unless the platform died in that moment.
  if (secrets !== deps.secrets.version(record.app))
    return "secrets_changed: the app's secrets are others than when it was taken";
  return deps.snapshots.fitting(generation, originOf(record, deps, deps.hypervisor.identity()));
}

async function coldStart(context: EffectContext, reason: string, booted: Booted): Promise<EffectResult> {
  const { deps, record, signal } = context;
  const { memoryMb } = guestSize(record.config);
  // First, because it may fail: a start without its secrets must not cost the machine anything.
  const secrets = deps.secrets.environment(record.app);
  await deps.files.prepare(record.id);
  await deps.snapshots.discardOthers(record.id, undefined);
  await deps.files.requireRoom(record.id, memoryMb);
  if (record.resetLayer || !(await deps.files.hasLayer(record.id))) await deps.files.freshLayer(record.id);
  context.patch({ resetLayer: false, coldReason: reason });
  if (!deps.network.owns(record.address)) context.patch({ address: freeAddress(deps) });
  const { spec, image } = await specOf(context, { cold: true });
  const limit = within(signal, deps.settings.bootTimeoutMs, "the boot");
  context.inside.streams.reset("the machine was started from scratch");
  context.machineLog.newGuest();
  const { agent } = await context.attach(await deps.hypervisor.boot(spec, limit));
  const hello = await agent.hello(limit);
  if (hello.phase !== "waiting") throw new Error(agent.startFailure ?? "the guest ended before its app was started");
  return startApp(context, { agent, image, secrets }, () => booted("cold", reason));
}

async function startApp(
  context: EffectContext,
  { agent, image, secrets }: { agent: GuestAgent; image: Image; secrets: Record<string, string> },
  patch: () => Partial<MachineRecord>,
): Promise<EffectResult> {
  const { deps, record, signal } = context;
  const { guest } = await deps.network.attach(record, servicePorts(record.config));
  const { restedSince } = context;
  context.inside.started("cold", restedSince === undefined ? 0 : Date.now() - Date.parse(restedSince));
  await agent.run(
    guestConfigOf(record, image.config, guest, secrets),
    within(signal, deps.settings.bootTimeoutMs, "starting the app"),
  );
  return untilReady(context, agent, patch);
}

/**
 * Running means that the app listens where it said it would, that it is known to listen elsewhere, that it ended, or
 * that it was given its time.
 */
async function untilReady(
  context: EffectContext,
  agent: GuestAgent,
  patch: () => Partial<MachineRecord>,
): Promise<EffectResult> {
  const { deps, signal } = context;
  const limit = within(signal, deps.settings.readyTimeoutMs, "listening on its ports");
  const ready = agent.ready(limit).then(
    () => "ready" as const,
    (error: unknown) => error,
  );
  const judged = context.live === undefined ? [] : [context.live.reachability.judged];
  const first = await Promise.race([ready, context.exited(), ...judged]);
  if (context.exit !== undefined) return { outcome: "app_ended", patch: patch() };
  signal.throwIfAborted();
  if (first === "ready") return { outcome: "started", patch: patch() };
  const elsewhere = context.live?.reachability.why;
  if (elsewhere !== undefined) return { outcome: "started", patch: patch(), details: { warning: elsewhere } };
  if (!limit.aborted) throw first;
  const stateReason = "the app does not listen on all ports of its services yet";
  void agent.ready(new AbortController().signal).then(
    () => context.clearReason(stateReason),
    () => {}, // the guest ended first
  );
  return { outcome: "started", patch: { ...patch(), stateReason }, details: { warning: stateReason } };
}

/** A start that an earlier platform process began: the guest is there, at whatever point it reached. */
async function goOn(context: EffectContext, booted: Booted): Promise<EffectResult> {
  const { deps, record, signal, live } = context;
  if (live === undefined) throw new Error("no guest to go on with");
  const hello = await live.agent.hello(within(signal, deps.settings.bootTimeoutMs, "the boot"), { resync: true });
  const kind = record.coldReason === CONSUMED ? "resume" : "cold";
  const patch = () => booted(kind, kind === "resume" ? "snapshot" : record.coldReason);
  if (hello.phase === "ended") {
    context.ended(hello.exit);
    return { outcome: "app_ended", patch: patch() };
  }
  if (hello.phase === "waiting") {
    const secrets = deps.secrets.environment(record.app);
    return startApp(context, { agent: live.agent, image: await imageOf(context), secrets }, patch);
  }
  await live.agent.awake(within(signal, deps.settings.resumeTimeoutMs, "setting the clock"));
  return untilReady(context, live.agent, patch);
}

async function imageOf({ deps, record }: EffectContext): Promise<Image> {
  const image = await deps.images.get(record.imageDigest);
  if (image !== undefined) return image;
  throw new HibernautError(
    "failed_precondition",
    `The image ${record.config.image} (${record.imageDigest}) is no longer in the image store. Update the machine with its image.`,
  );
}

async function specOf(context: EffectContext, { cold }: { cold: boolean }): Promise<{ spec: VmmSpec; image: Image }> {
  const { deps, record, signal } = context;
  const image = await imageOf(context);
  const bundle = deps.bundles.get(record.bundleVersion);
  if (bundle === undefined) {
    throw new HibernautError(
      "failed_precondition",
      `Guest bundle ${record.bundleVersion} is gone. Run \`hibernaut machine update ${record.id} --yes\`.`,
    );
  }
  const paths = deps.files.paths(record.id);
  const { cpus, memoryMb } = guestSize(record.config);
  // A guest that goes on where it stood has the disks that it knows, in the size that it knows.
  const disks = await deps.volumes.disks(record.config.mounts, { grow: cold, signal });
  const network = await deps.network.attach(record, servicePorts(record.config));
  const spec: VmmSpec = {
    machineId: record.id,
    cpus,
    memoryMb,
    bundle,
    image: image.rootfs,
    layer: paths.layer,
    volumes: disks.map(({ id, file }) => ({ serial: id, file })),
    memory: paths.memory,
    runDir: paths.run,
    consoleLog: paths.console,
    network,
  };
  return { spec, image };
}
