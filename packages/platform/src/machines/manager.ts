/** All machines of a platform: the implementation of {@link MachineService}. */
import { HibernautError } from "../domain/errors.ts";
import { findNamed } from "../domain/naming.ts";
import type { GuestCommand } from "../guest/command.ts";
import type { CommandSpec } from "../guest/protocol.ts";
import { freeAddress } from "./address.ts";
import { type MachineConfig, requireSupported } from "../domain/config.ts";
import { MachineController } from "./controller.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { suspendEligibility } from "./eligibility.ts";
import { checkHostname } from "./hostnames.ts";
import { newMachineId, newMachineName, newUlid } from "./identity.ts";
import type { SecretSummary } from "../secrets/contract.ts";
import type { InsideListener } from "./inside.ts";
import { type LogSource, readLogs } from "./logs/follow.ts";
import type { LogQuery } from "./logs/query.ts";
import { sentenceOf } from "./logs/sentences.ts";
import { changeSecrets } from "./secrets.ts";
import type { Asked, LogBlocks, MachineService, MachineView, SecretsEffect, WaitTarget } from "./service.ts";
import type {
  AppRecord,
  CreateMachine,
  KeepAwake,
  MachineEvent,
  MachineRecord,
  MachineState,
  ReleaseRecord,
} from "../domain/machine.ts";
import type { HeldMounts } from "../volumes/contract.ts";
import { waitFor, type WaitOptions } from "./waiting.ts";

/** Recovering means talking to guests: a few at once, so that a small host is not swamped. */
const RECOVER_AT_ONCE = 8;
const DESTROY_TIMEOUT_MS = 60_000;
const MOST_RELEASES = 1000;
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const NAME_RULE = "1 to 63 of a-z, 0-9 and -, neither beginning nor ending with -";

export class MachineManager implements MachineService {
  readonly #deps: MachineDependencies;
  readonly #controllers = new Map<string, MachineController>();
  readonly #hostnameListeners = new Set<() => void>();
  readonly #listeners = new Set<(record: MachineRecord) => void>();
  /** Told when an app is deleted. */
  readonly #appListeners = new Set<() => void>();

  constructor(deps: MachineDependencies) {
    this.#deps = deps;
  }

  /** Brings every stored machine and everything found on the host together. Call once, before anything else. */
  async recover(): Promise<void> {
    const { hypervisor, store } = this.#deps;
    const refs = await hypervisor.find();
    const records = store.machines.list();
    const known = new Set(records.map((record) => record.id));
    for (const stray of refs.filter((ref) => !known.has(ref.machineId))) await hypervisor.end(stray);
    const queue = records.map((record) => this.#control(record));
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { id } = next.record;
        await next.recover(refs.filter((ref) => ref.machineId === id));
      }
    };
    await Promise.all(Array.from({ length: RECOVER_AT_ONCE }, worker));
  }

  /** Finishes what is under way and lets go of the guests, which run on. */
  async close(): Promise<void> {
    await Promise.all([...this.#controllers.values()].map((controller) => controller.close()));
  }

  createApp(name: string): AppRecord {
    if (!NAME.test(name))
      throw new HibernautError("invalid_argument", `An app's name is ${NAME_RULE}.`, {
        field: "app_name",
        value: name,
      });
    const app = { name, createdAt: new Date().toISOString() };
    if (!this.#deps.store.apps.insert(app))
      throw new HibernautError("already_exists", `App ${name} exists already. Choose another name.`, {
        app_name: name,
      });
    return app;
  }

  listApps(): AppRecord[] {
    return this.#deps.store.apps.list();
  }

  getApp(name: string, advice = "See `hibernaut apps list`."): AppRecord {
    const app = this.#deps.store.apps.get(name);
    if (app === undefined)
      throw new HibernautError("not_found", `There is no app ${name.slice(0, 80)}. ${advice}`, { app_name: name });
    return app;
  }

  async deleteApp(name: string, { force = false } = {}): Promise<void> {
    this.getApp(name);
    const machines = this.#deps.store.machines.list(name);
    this.#refuseVolumes(name, { force });
    if (machines.length > 0 && !force) {
      const message = `App ${name} still has ${machines.length} machine(s). Destroy them first, or add --force (over HTTP \`?force=true\`).`;
      throw new HibernautError("failed_precondition", message, { machines: machines.map((machine) => machine.id) });
    }
    for (const { id } of machines) this.destroy(name, id, { force: true });
    await Promise.all(machines.map(({ id }) => this.wait(name, id, ["destroyed"], { timeoutMs: DESTROY_TIMEOUT_MS })));
    await this.#deps.volumes.destroyAll(name);
    if (!this.#deps.store.apps.delete(name))
      throw new HibernautError("aborted", `App ${name} got a new machine or volume meanwhile. Try again.`);
    for (const listener of this.#appListeners) listener();
    for (const listener of this.#hostnameListeners) listener();
  }

  async create(app: string, input: CreateMachine): Promise<MachineView> {
    this.getApp(app, `Create it with \`hibernaut apps create ${app}\`.`);
    const name = input.name ?? newMachineName();
    if (!NAME.test(name))
      throw new HibernautError("invalid_argument", `A machine's name is ${NAME_RULE}.`, { field: "name", value: name });
    const { region } = this.#deps.settings;
    if (input.region !== undefined && input.region !== region) {
      throw new HibernautError(
        "invalid_argument",
        `There is no region ${input.region} here; the only one is ${region}.`,
        { field: "region" },
      );
    }
    this.#refuseTakenName(app, name);
    requireSupported(input.config);
    // Held until the machine is stored: a collection in between would take its image away.
    using image = await this.#deps.images.hold(input.config.image);
    // Likewise: no other machine gets them until this one is stored with them.
    using held = await this.#deps.volumes.hold(app, input.config.mounts);
    this.getApp(app);
    const record = this.#insert(app, name, mounting(input.config, held), image.digest);
    const controller = this.#control(record);
    controller.machineLog.platform(
      sentenceOf({ at: record.createdAt, type: "create", from: null, to: "created", details: {} }),
    );
    for (const listener of this.#listeners) listener(record);
    if (input.skipLaunch !== true) controller.command({ type: "start" });
    return this.#view(controller.record);
  }

  list(app: string): MachineView[] {
    this.getApp(app);
    const records = this.#deps.store.machines.list(app);
    return records.map((record) => this.#view(this.#controllers.get(record.id)?.record ?? record));
  }

  get(app: string, id: string): MachineView {
    return this.#view(this.#find(app, id).record);
  }

  events(app: string, id: string, limit: number): MachineEvent[] {
    return this.#deps.store.machines.events(this.#find(app, id).record.id, limit);
  }

  async update(app: string, id: string, config?: MachineConfig): Promise<MachineView> {
    const controller = this.#find(app, id);
    const { record } = controller;
    if (config !== undefined) requireSupported(config);
    using image = config === undefined ? undefined : await this.#deps.images.hold(config.image);
    using held = await this.#deps.volumes.hold(app, config?.mounts, record.id);
    controller.command({
      type: "update",
      config: config === undefined ? record.config : mounting(config, held),
      imageDigest: image?.digest ?? record.imageDigest,
    });
    return this.#view(controller.record);
  }

  start(app: string, id: string, asked: Asked = {}): { previousState: MachineState } {
    const controller = this.#find(app, id);
    const previousState = controller.record.state;
    controller.command({ type: "start", details: { ...asked }, unattended: asked.by === "proxy" });
    return { previousState };
  }

  suspend(app: string, id: string, asked: Asked = {}): void {
    this.#find(app, id).command({ type: "suspend", details: { ...asked } });
  }

  stop(app: string, id: string, asked: Asked = {}): void {
    this.#find(app, id).command({ type: "stop", details: { ...asked } });
  }

  restart(app: string, id: string): void {
    this.#find(app, id).command({ type: "restart" });
  }

  destroy(app: string, id: string, { force = false } = {}): void {
    this.#find(app, id).command({ type: "destroy", force });
  }

  sleep(app: string, id: string, how: "suspend" | "stop", details: Record<string, unknown>): void {
    this.#find(app, id).command({ type: "sleep", how, details });
  }

  onChange(listener: (record: MachineRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  hostnames(): Record<string, string> {
    return Object.fromEntries(this.#deps.store.hostnames.list().map(({ name, app }) => [name, app]));
  }

  addHostname(app: string, name: string): string {
    this.getApp(app);
    const hostname = checkHostname(name, this.#deps.settings.proxySuffixes);
    const owner = this.hostnames()[hostname];
    // Asked for twice is had once, as with anything that is set.
    if (owner === app) return hostname;
    if (!this.#deps.store.hostnames.insert(hostname, app)) {
      const message = `${hostname} belongs to app ${owner} already. Remove it there first.`;
      throw new HibernautError("already_exists", message, { hostname, app_name: owner });
    }
    for (const listener of this.#hostnameListeners) listener();
    return hostname;
  }

  removeHostname(app: string, name: string): void {
    this.getApp(app);
    if (!this.#deps.store.hostnames.remove(name.toLowerCase(), app))
      throw new HibernautError("not_found", `App ${app} has no host name ${name}.`, { hostname: name });
    for (const listener of this.#hostnameListeners) listener();
  }

  listReleases(app: string, limit: number): ReleaseRecord[] {
    this.getApp(app);
    return this.#deps.store.releases.list(app, limit);
  }

  async beginRelease(app: string, image: string, description: string): Promise<ReleaseRecord> {
    this.getApp(app);
    const { digest } = await this.#deps.images.ensure(image);
    const createdAt = new Date().toISOString();
    this.getApp(app);
    return this.#deps.store.releases.add(app, { status: "pending", image, digest, description, createdAt });
  }

  endRelease(app: string, version: number, status: ReleaseRecord["status"], description: string): ReleaseRecord {
    this.getApp(app);
    this.#deps.store.releases.update(app, version, status, description);
    const found = this.#deps.store.releases.list(app, MOST_RELEASES).find((release) => release.version === version);
    if (found !== undefined) return found;
    throw new HibernautError("not_found", `App ${app} has no release ${version}. See \`hibernaut releases\`.`);
  }

  onHostnames(listener: () => void): () => void {
    this.#hostnameListeners.add(listener);
    return () => this.#hostnameListeners.delete(listener);
  }

  listSecrets(app: string): SecretSummary[] {
    this.getApp(app);
    return this.#deps.secrets.list(app);
  }

  setSecrets(app: string, values: Record<string, string>, options?: { dryRun?: boolean }): SecretsEffect {
    this.getApp(app);
    const { secrets } = this.#deps;
    const concerned = secrets.changed(app, values).length === 0 ? [] : this.#controllersOf(app);
    return changeSecrets(concerned, () => secrets.set(app, values), options);
  }

  unsetSecret(app: string, name: string, options?: { dryRun?: boolean }): SecretsEffect {
    if (!this.listSecrets(app).some((secret) => secret.name === name))
      throw new HibernautError("not_found", `App ${app} has no secret ${name}. See \`hibernaut secrets list\`.`, {
        app_name: app,
        secret: name,
      });
    return changeSecrets(this.#controllersOf(app), () => this.#deps.secrets.unset(app, name), options);
  }

  logs(app: string, machineIds: readonly string[] | undefined, query: LogQuery, signal: AbortSignal): LogBlocks {
    this.getApp(app);
    const source = machineIds === undefined ? this.#logsOf(app) : fixed(machineIds.map((id) => this.#find(app, id)));
    return readLogs(source, query, signal);
  }

  run(app: string, id: string, spec: CommandSpec): GuestCommand {
    return this.#find(app, id).run(spec);
  }

  commands(id: string): number {
    return this.#controllers.get(id)?.inside.streams.commands ?? 0;
  }

  identify(id: string): { app: string; id: string } {
    return { app: this.#own(id).record.app, id };
  }

  keepAwake(id: string, ttlS: number, reason: string): KeepAwake | null {
    const longest = this.#deps.settings.keepAwakeMaxS;
    if (ttlS > longest) {
      const message = `A machine is kept awake for at most ${longest} s at once (setting HIBERNAUT_KEEPALIVE_MAX_TTL). Ask again before it is over.`;
      throw new HibernautError("invalid_argument", message, { field: "ttl", maximum: longest });
    }
    const lease = ttlS === 0 ? null : { until: new Date(Date.now() + ttlS * 1000).toISOString(), reason };
    this.#own(id).keepAwake(lease);
    return lease;
  }

  listen(id: string, listener: InsideListener): () => void {
    return this.#own(id).inside.subscribe(listener);
  }

  ready(id: string, questionId: string): void {
    this.#own(id).inside.ready(questionId);
  }

  awaitReply(id: string, sent: Promise<void>): void {
    this.#own(id).inside.awaitReply(sent);
  }

  /** Has a running machine stand still, its disks flushed, while `work` goes on. Not a part of {@link MachineService}. */
  holdStill(id: string, work: () => Promise<void>): Promise<void> {
    return this.#own(id).holdStill(work);
  }

  async wait(app: string, id: string, targets: WaitTarget[], options: WaitOptions): Promise<MachineState> {
    return waitFor(this.#find(app, id), targets, options);
  }

  /** Digests of the images that machines need. */
  imagesInUse(): Set<string> {
    const machines = this.#deps.store.machines.list();
    return new Set(
      machines.flatMap((machine) => [machine.imageDigest, ...(machine.pending ? [machine.pending.imageDigest] : [])]),
    );
  }

  /** Versions of the guest bundles that machines boot. */
  bundlesInUse(): Set<string> {
    const machines = this.#deps.store.machines.list();
    return new Set(
      machines.flatMap((machine) => [
        machine.bundleVersion,
        ...(machine.pending ? [machine.pending.bundleVersion] : []),
      ]),
    );
  }

  #controllersOf(app: string): MachineController[] {
    return [...this.#controllers.values()].filter(({ record }) => record.app === app);
  }

  #logsOf(app: string): LogSource {
    return {
      list: () =>
        [...this.#controllers.values()].filter(({ record }) => record.app === app).map(({ machineLog }) => machineLog),
      complete: () => this.#deps.store.apps.get(app) === undefined,
      onChange: (listener) => {
        const stop = this.onChange((record) => record.app === app && listener());
        this.#appListeners.add(listener);
        return () => {
          stop();
          this.#appListeners.delete(listener);
        };
      },
    };
  }

  #insert(app: string, name: string, config: MachineConfig, imageDigest: string): MachineRecord {
    const { store, settings, bundles } = this.#deps;
    const at = new Date().toISOString();
    const record: MachineRecord = {
      id: newMachineId(),
      app,
      name,
      state: "created",
      goal: null,
      region: settings.region,
      version: newUlid(),
      config,
      imageDigest,
      bundleVersion: bundles.current.version,
      address: freeAddress(this.#deps),
      snapshot: null,
      capturing: null,
      coldReason: "first_start",
      resetLayer: true,
      pending: null,
      lastBoot: null,
      stateReason: null,
      restarts: 0,
      createdAt: at,
      updatedAt: at,
    };
    if (!store.machines.insert(record, { at, type: "create", from: null, to: "created", details: {} }))
      this.#refuseTakenName(app, name);
    return record;
  }

  #refuseVolumes(app: string, { force }: { force: boolean }): void {
    const volumes = this.#deps.volumes.list(app);
    if (volumes.length === 0 || force) return;
    throw new HibernautError(
      "failed_precondition",
      `App ${app} still has ${volumes.length} volume(s) with data. Destroy them first, or add --force (over HTTP \`?force=true\`), which destroys them with their snapshots.`,
      { volumes: volumes.map(({ id }) => id) },
    );
  }

  #refuseTakenName(app: string, name: string): void {
    const holder = this.#deps.store.machines.list(app).find((machine) => machine.name === name);
    if (holder === undefined) return;
    throw new HibernautError(
      "already_exists",
      `App ${app} has a machine named ${name} already (${holder.id}). Choose another name.`,
      { machine_id: holder.id },
    );
  }

  #control(record: MachineRecord): MachineController {
    const controller = new MachineController(this.#deps, record);
    this.#controllers.set(record.id, controller);
    controller.subscribe((changed) => {
      if (changed.state === "destroyed") this.#controllers.delete(changed.id);
      for (const listener of this.#listeners) listener(changed);
    });
    return controller;
  }

  /** The machine that a word means: its id, its name, or the beginning of its id. A destroyed one has its id only. */
  #find(app: string, word: string): MachineController {
    this.getApp(app);
    const exact = this.#controllers.get(word);
    if (exact?.record.app === app) return exact;
    const records = this.#controllersOf(app).map(({ record }) => record);
    const found = findNamed(word, records, { noun: "machine" });
    const controller = found === undefined ? this.#destroyedOne(word) : this.#controllers.get(found.id);
    if (controller === undefined || controller.record.app !== app) {
      throw new HibernautError(
        "not_found",
        `App ${app} has no machine ${word.slice(0, 80)}. See \`hibernaut machine list --app ${app}\`.`,
        { app_name: app, machine_id: word },
      );
    }
    return controller;
  }

  #own(id: string): MachineController {
    const controller = this.#controllers.get(id);
    if (controller === undefined) throw new HibernautError("not_found", `There is no machine ${id} any more.`);
    return controller;
  }

  #destroyedOne(id: string): MachineController | undefined {
    const record = this.#deps.store.machines.get(id);
    return record && new MachineController(this.#deps, record);
  }

  #view(record: MachineRecord): MachineView {
    const limits = {
      suspendMaxMemoryMb: this.#deps.settings.suspendMaxMemoryMb,
      currentBundle: this.#deps.bundles.current.version,
    };
    return {
      record,
      suspend: suspendEligibility(record, limits),
      checks: this.#deps.checkResults?.(record.id) ?? [],
      image: { ref: record.config.image, digest: record.imageDigest },
    };
  }
}

/** A configuration with the volumes that were found for it. */
function mounting({ mounts: _asked, ...config }: MachineConfig, { mounts }: HeldMounts): MachineConfig {
  return mounts === undefined ? config : { ...config, mounts };
}

/** The logs of machines that were named. */
function fixed(controllers: readonly MachineController[]): LogSource {
  const logs = [...new Set(controllers.map(({ machineLog }) => machineLog))];
  return { list: () => logs, complete: () => true, onChange: () => () => {} };
}
