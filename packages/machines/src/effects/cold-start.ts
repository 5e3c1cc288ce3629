/** Starting a machine from scratch. */
import { guestSize, servicePorts, swapMbOf } from "@hibernaut/domain/config";
import { type GuestFile, guestFiles } from "@hibernaut/domain/guest-files";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Image } from "@hibernaut/images";
import { within } from "@hibernaut/lib/async";
import { wipe } from "@hibernaut/lib/wipe";
import { networkMachine } from "@hibernaut/network";
import { anotherAddress } from "../address.ts";
import type { Boot, EffectOutcome, Moved } from "../decide/index.ts";
import { guestConfigOf } from "../environment.ts";
import type { LiveGuest } from "../guest.ts";
import { requireOwned } from "./owned.ts";
import type { EffectPorts } from "./ports.ts";
import { untilReady } from "./ready.ts";
import { specOf } from "./spec.ts";

interface ColdStartInput {
  record: MachineRecord;
  /** Why there is no resume. */
  reason: string;
  /** When the machine last ran, if it rested since (RFC 3339). */
  restedSince: string | null;
  booted(kind: "cold", reason: string): Boot;
}

/** Boots a guest and starts its app. Resolves once the app is ready, or had its time. */
export async function coldStart(
  { record, reason, restedSince, booted }: ColdStartInput,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const { files, snapshots, network, guest, inside, settings, steps } = ports;
  const preparing = performance.now();
  // First, because it may fail: a start without its secrets must not cost the machine anything.
  const secrets = ports.secrets.environment(record.app);
  wipeFiles(guestFiles(record.config.files, record.app, secrets));
  await files.prepare(record.id);
  await snapshots.discardOthers(record.id, undefined);
  ports.diskQuota?.requireForStart(record.app, record.config, files.paths(record.id).memory);
  const swapMb = swapMbOf(record.config);
  await files.requireRoom(record.id, guestSize(record.config).memoryMb + swapMb);
  if (record.resetLayer || !(await files.hasLayer(record.id))) await files.freshLayer(record.id, { swapMb });
  const address = network.owns(record.address) ? record.address : await anotherAddress(record, ports);
  const moved = moveOf(record, ports);
  ports.note({ type: "cold_start", reason, address, ...(moved !== undefined && { moved }) });
  const placed = { ...record, address, ...moved };
  const { spec, image } = await specOf(placed, { cold: true }, ports, signal);
  steps.add("prepare", preparing);
  const limit = within(signal, settings.bootTimeoutMs, "the boot");
  inside.streams.reset("the machine was started from scratch");
  ports.machineLog.newGuest();
  const { live, hello } = await steps.time("boot", async () => {
    await requireOwned(record.id, ports, signal);
    const vmm = await ports.hypervisor.boot(spec, limit);
    const attached = await guest.attach(vmm, servicePorts(record.config));
    return { live: attached, hello: await attached.agent.hello(limit) };
  });
  if (hello.phase !== "waiting")
    throw new Error(live.agent.startFailure ?? "the guest ended before its app was started");
  const input = { record: placed, image, secrets, restedSince, booted: () => booted("cold", reason) };
  return startApp(input, live, ports, signal);
}

/** What changes in a machine that was to move to the newest guest bundle. A boot is what it waited for. */
function moveOf({ bundleMove }: MachineRecord, { bundles }: EffectPorts): Moved | undefined {
  return bundleMove ? { version: bundleMove.version, bundleVersion: bundles.current.version } : undefined;
}

/** Some have secrets, and all were decoded for this start. */
function wipeFiles(files: readonly GuestFile[] = []): void {
  wipe(...files.map(({ content }) => content));
}

interface StartAppInput {
  record: MachineRecord;
  image: Image;
  /** As environment variables. */
  secrets: Record<string, string>;
  restedSince: string | null;
  booted(): Boot;
}

/** Configures a guest that waits for it, and starts its app. */
export async function startApp(
  { record, image, secrets, restedSince, booted }: StartAppInput,
  { agent }: LiveGuest,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  await ports.steps.time("app", async () => {
    const { guest: network } = await ports.network.attach(networkMachine(record), servicePorts(record.config));
    ports.inside.started("cold", restedSince === null ? 0 : Date.now() - Date.parse(restedSince));
    // The boot may have taken longer than the host's lease.
    await requireOwned(record.id, ports, signal);
    const config = guestConfigOf(record, image.config, network, secrets);
    const limit = within(signal, ports.settings.bootTimeoutMs, "starting the app");
    await agent.run(config, limit).finally(() => wipeFiles(config.files));
    // As after every resume: the platform may have been halted since the look before.
    await requireOwned(record.id, ports, signal);
  });
  return ports.steps.time("ready", () => untilReady({ agent, booted }, ports, signal));
}
