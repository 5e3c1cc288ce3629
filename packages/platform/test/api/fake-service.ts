/**
 * Machines without machines: a MachineService in memory, for tests of what stands before it. It
 * accepts an action, passes through the passing state and rests after a moment.
 *
 * An image that contains `broken` fails to start; one that contains `slow` takes its time.
 */
import { randomBytes } from "node:crypto";
import { duplexPair } from "node:stream";
import { HibernautError } from "../../src/domain/errors.ts";
import { findNamed } from "../../src/domain/naming.ts";
import { GuestAgent } from "../../src/guest/agent.ts";
import type { GuestCommand } from "../../src/guest/command.ts";
import { GuestStreams } from "../../src/guest/streams.ts";
import type { CommandSpec } from "../../src/guest/protocol.ts";
import { FakeGuest } from "../../src/hypervisor/fake/guest.ts";
import { guestSize, type MachineConfig } from "../../src/domain/config.ts";
import { checkHostname } from "../../src/machines/hostnames.ts";
import { Inside, type InsideListener } from "../../src/machines/inside.ts";
import type { LogEntry } from "../../src/machines/logs/entry.ts";
import { isTooOld, isWanted, type LogQuery } from "../../src/machines/logs/query.ts";
import type { LogBlocks, MachineService, MachineView, SecretsEffect, WaitTarget } from "../../src/machines/service.ts";
import { digestOf } from "../../src/secrets/cipher.ts";
import type { SecretSummary } from "../../src/secrets/contract.ts";
import { checkSecrets } from "../../src/secrets/rules.ts";
import {
  type AppRecord,
  type CreateMachine,
  isResting,
  type KeepAwake,
  type MachineEvent,
  type MachineRecord,
  type MachineState,
  type ReleaseRecord,
} from "../../src/domain/machine.ts";

const KEY = Buffer.alloc(32);
const MOMENT_MS = 5;
const SLOW_MS = 60_000;

interface Waiter {
  id: string;
  reached(state: MachineState): boolean;
}

export class FakeMachineService implements MachineService {
  readonly apps = new Map<string, AppRecord>();
  readonly machines = new Map<string, MachineRecord>();
  readonly history = new Map<string, MachineEvent[]>();
  readonly releases = new Map<string, ReleaseRecord[]>();
  readonly names = new Map<string, string>();
  /** Digests by name, by app. */
  readonly secrets = new Map<string, Map<string, string>>();
  readonly inside = new Map<string, Inside>();
  readonly listeners = new Set<(record: MachineRecord) => void>();
  readonly waiters = new Set<Waiter>();
  /** What all machines printed. Followers look again at every change. */
  readonly lines: LogEntry[] = [];
  readonly followers = new Set<() => void>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  createApp(name: string): AppRecord {
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(name))
      throw new HibernautError("invalid_argument", "An app's name must be lower case.");
    if (this.apps.has(name))
      throw new HibernautError("already_exists", `There is an app ${name} already.`, { app: name });
    const app = { name, createdAt: new Date().toISOString() };
    this.apps.set(name, app);
    return app;
  }

  listApps(): AppRecord[] {
    return [...this.apps.values()];
  }

  getApp(name: string): AppRecord {
    const app = this.apps.get(name);
    if (!app) throw new HibernautError("not_found", `There is no app ${name.slice(0, 80)}.`);
    return app;
  }

  async deleteApp(name: string, options: { force?: boolean } = {}): Promise<void> {
    const live = this.list(name);
    if (live.length > 0 && !options.force) throw new HibernautError("failed_precondition", `App ${name} has machines.`);
    for (const { record } of live) this.destroy(name, record.id, { force: true });
    this.apps.delete(name);
  }

  async create(app: string, input: CreateMachine): Promise<MachineView> {
    this.getApp(app);
    const id = randomBytes(7).toString("hex");
    const name = input.name ?? `m-${id.slice(0, 6)}`;
    if (this.list(app).some(({ record }) => record.name === name)) {
      throw new HibernautError("already_exists", `App ${app} has a machine ${name} already.`);
    }
    this.machines.set(id, newRecord(app, id, name, input));
    this.#move(id, "created", "create");
    if (!input.skipLaunch) this.start(app, id);
    return this.get(app, id);
  }

  list(app: string): MachineView[] {
    this.getApp(app);
    return [...this.machines.values()].filter((record) => record.app === app && record.state !== "destroyed").map(view);
  }

  get(app: string, id: string): MachineView {
    return view(this.#record(app, id));
  }

  events(app: string, word: string, limit: number): MachineEvent[] {
    const { id } = this.#record(app, word);
    return (this.history.get(id) ?? []).slice(-limit).reverse();
  }

  async update(app: string, word: string, config?: MachineConfig): Promise<MachineView> {
    const record = this.#record(app, word);
    const { id } = record;
    const back = record.state === "failed" ? "running" : record.state;
    if (!isResting(back)) throw new HibernautError("aborted", `Machine ${id} is ${record.state}.`);
    record.config = config ?? record.config;
    record.version = version();
    record.snapshot = null;
    const broken = back === "running" && record.config.image.includes("broken");
    this.#pass(id, "updating", broken ? "failed" : back, "update");
    return this.get(app, id);
  }

  start(app: string, word: string): { previousState: MachineState } {
    const record = this.#record(app, word);
    const { id } = record;
    const previousState = record.state;
    if (previousState === "running" || previousState === "starting") return { previousState };
    const broken = record.config.image.includes("broken");
    const kind = record.snapshot ? ("resume" as const) : ("cold" as const);
    record.snapshot = null;
    record.lastBoot = { kind, reason: "start", at: new Date().toISOString(), duration_ms: 182 };
    this.#pass(id, "starting", broken ? "failed" : "running", "start");
    return { previousState };
  }

  suspend(app: string, word: string): void {
    const { suspend, record } = this.get(app, word);
    const { id } = record;
    if (record.state === "suspended") return;
    if (!suspend.eligible)
      throw new HibernautError("failed_precondition", `Machine ${id} cannot suspend.`, { reasons: suspend.reasons });
    this.#pass(id, "suspending", "suspended", "suspend");
  }

  stop(app: string, word: string): void {
    const { id, state } = this.#record(app, word);
    if (state !== "stopped") this.#pass(id, "stopping", "stopped", "stop");
  }

  restart(app: string, word: string): void {
    const { id } = this.#record(app, word);
    this.#pass(id, "stopping", "running", "restart");
  }

  destroy(app: string, word: string, options: { force?: boolean } = {}): void {
    const record = this.#record(app, word);
    const { id } = record;
    if (record.state === "running" && !options.force) {
      throw new HibernautError(
        "failed_precondition",
        `Machine ${id} is running. Stop it first, or destroy it with force.`,
      );
    }
    this.#pass(id, "destroying", "destroyed", "destroy");
  }

  /** Every command is `cat`. */
  run(app: string, word: string, spec: CommandSpec): GuestCommand {
    const { id, state } = this.#record(app, word);
    if (state !== "running") throw new HibernautError("failed_precondition", `Machine ${id} is ${state}.`);
    const streams = new GuestStreams();
    const guest = new FakeGuest(() => {});
    const [near, far] = duplexPair();
    guest.connect(far);
    const agent = new GuestAgent(near, streams);
    void agent.hello(new AbortController().signal);
    return streams.run(spec);
  }

  /** The machine's app prints a line. */
  print(id: string, text: string, stream: LogEntry["stream"] = "stdout", at = new Date().toISOString()): void {
    this.lines.push({ at, machine: id, stream, text });
    for (const follower of this.followers) follower();
  }

  logs(app: string, words: readonly string[] | undefined, query: LogQuery, signal: AbortSignal): LogBlocks {
    this.getApp(app);
    const ids = words?.map((word) => this.#record(app, word).id);
    return this.#logs(app, ids, query, signal);
  }

  async *#logs(app: string, ids: readonly string[] | undefined, query: LogQuery, signal: AbortSignal): LogBlocks {
    const wanted = (line: LogEntry) =>
      (ids === undefined ? this.machines.get(line.machine)?.app === app : ids.includes(line.machine)) &&
      isWanted(line, query) &&
      !isTooOld(line, query);
    const over = () => ids?.every((id) => this.machines.get(id)?.state === "destroyed") === true;
    let seen = this.lines.length;
    yield this.lines.filter(wanted).slice(this.lines.filter(wanted).length - query.limit);
    while (query.follow === true && !signal.aborted && !over()) {
      const changed = Promise.withResolvers<void>();
      this.followers.add(changed.resolve);
      signal.addEventListener("abort", () => changed.resolve(), { once: true });
      if (this.lines.length === seen) await changed.promise;
      this.followers.delete(changed.resolve);
      const news = this.lines.slice(seen);
      seen = this.lines.length;
      yield news.filter(wanted);
    }
  }

  sleep(app: string, id: string, how: "suspend" | "stop"): void {
    this[how](app, id);
  }

  onChange(listener: (record: MachineRecord) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  hostnames(): Record<string, string> {
    return Object.fromEntries(this.names);
  }

  addHostname(app: string, name: string): string {
    this.getApp(app);
    const hostname = checkHostname(name, ["localhost"]);
    if (this.names.has(hostname)) throw new HibernautError("already_exists", `${hostname} is taken.`);
    this.names.set(hostname, app);
    return hostname;
  }

  removeHostname(app: string, name: string): void {
    this.getApp(app);
    if (this.names.get(name) !== app) throw new HibernautError("not_found", `App ${app} has no host name ${name}.`);
    this.names.delete(name);
  }

  listReleases(app: string, limit: number): ReleaseRecord[] {
    this.getApp(app);
    return (this.releases.get(app) ?? []).slice(-limit).reverse();
  }

  async beginRelease(app: string, image: string, description: string): Promise<ReleaseRecord> {
    this.getApp(app);
    const all = this.releases.get(app) ?? [];
    const digest = `sha256:${"0".repeat(64)}`;
    const createdAt = new Date().toISOString();
    const release = { version: all.length + 1, status: "pending" as const, image, digest, description, createdAt };
    this.releases.set(app, [...all, release]);
    return release;
  }

  endRelease(app: string, number: number, status: ReleaseRecord["status"], description: string): ReleaseRecord {
    this.getApp(app);
    const release = this.releases.get(app)?.find((one) => one.version === number);
    if (!release) throw new HibernautError("not_found", `App ${app} has no release ${number}.`);
    return Object.assign(release, { status, description });
  }

  onHostnames(): () => void {
    return () => {};
  }

  listSecrets(app: string): SecretSummary[] {
    this.getApp(app);
    const own = [...(this.secrets.get(app) ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return own.map(([name, digest]) => ({ name, digest, updatedAt: "2026-01-01T00:00:00.000Z" }));
  }

  setSecrets(app: string, values: Record<string, string>, { dryRun = false } = {}): SecretsEffect {
    this.getApp(app);
    checkSecrets(values);
    const digests = Object.entries(values).map(([name, value]): [string, string] => [name, digestOf(KEY, value)]);
    return this.#changeSecrets(app, new Map([...(this.secrets.get(app) ?? []), ...digests]), dryRun);
  }

  unsetSecret(app: string, name: string, { dryRun = false } = {}): SecretsEffect {
    this.getApp(app);
    const rest = new Map(this.secrets.get(app));
    if (!rest.delete(name)) throw new HibernautError("not_found", `App ${app} has no such secret.`);
    return this.#changeSecrets(app, rest, dryRun);
  }

  #changeSecrets(app: string, digests: Map<string, string>, dryRun: boolean): SecretsEffect {
    const records = this.list(app).map(({ record }) => record);
    const asleep = records.filter(({ state, snapshot }) => state === "suspended" && snapshot !== null);
    const awake = records.filter(({ state }) => state === "running" || state === "starting");
    if (!dryRun) this.secrets.set(app, digests);
    if (!dryRun) for (const record of asleep) record.snapshot = null;
    return { discarded: asleep.map(({ id }) => id), pending: awake.map(({ id }) => id) };
  }

  commands(): number {
    return 0;
  }

  identify(id: string): { app: string; id: string } {
    const record = this.machines.get(id);
    if (!record) throw new HibernautError("not_found", "It is gone.");
    return { app: record.app, id };
  }

  keepAwake(id: string, ttlS: number, reason: string): KeepAwake | null {
    const lease = ttlS === 0 ? null : { until: new Date(Date.now() + ttlS * 1000).toISOString(), reason };
    Object.assign(this.machines.get(id) ?? {}, { keepAwake: lease });
    return lease;
  }

  listen(id: string, listener: InsideListener): () => void {
    return this.#inside(id).subscribe(listener);
  }

  ready(id: string, questionId: string): void {
    this.#inside(id).ready(questionId);
  }

  awaitReply(id: string, reply: Promise<void>): void {
    this.#inside(id).awaitReply(reply);
  }

  #inside(id: string): Inside {
    const inside = this.inside.get(id) ?? new Inside();
    this.inside.set(id, inside);
    return inside;
  }

  wait(
    app: string,
    word: string,
    targets: WaitTarget[],
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<MachineState> {
    const record = this.#record(app, word);
    const { id } = record;
    const there = (state: MachineState) =>
      targets.some((target) => (target === "settled" ? isResting(state) : target === state));
    if (there(record.state)) return Promise.resolve(record.state);
    const { promise, resolve, reject } = Promise.withResolvers<MachineState>();
    const waiter: Waiter = {
      id,
      reached(state) {
        if (there(state)) resolve(state);
        return there(state);
      },
    };
    this.waiters.add(waiter);
    const timer = setTimeout(() => {
      const message = `machine failed to reach desired state, ${targets.join(", ")}, currently ${record.state}`;
      reject(new HibernautError("deadline_exceeded", message));
    }, options.timeoutMs);
    options.signal?.addEventListener("abort", () => reject(options.signal?.reason));
    return promise.finally(() => {
      clearTimeout(timer);
      this.waiters.delete(waiter);
    });
  }

  /** Ends what is still under way. */
  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #record(app: string, word: string): MachineRecord {
    this.getApp(app);
    const own = [...this.machines.values()].filter((record) => record.app === app);
    const live = own.filter(({ state }) => state !== "destroyed");
    const record = findNamed(word, live, { noun: "machine" }) ?? own.find(({ id }) => id === word);
    if (!record) throw new HibernautError("not_found", `App ${app} has no machine ${word.slice(0, 80)}.`);
    return record;
  }

  #pass(id: string, passing: MachineState, end: MachineState, type: string): void {
    clearTimeout(this.#timers.get(id));
    this.#move(id, passing, type);
    const delay = this.machines.get(id)?.config.image.includes("slow") ? SLOW_MS : MOMENT_MS;
    const finish = () => this.#move(id, end, type);
    this.#timers.set(id, setTimeout(finish, delay));
  }

  #move(id: string, to: MachineState, type: string): void {
    const record = this.machines.get(id);
    if (!record) return;
    const at = new Date().toISOString();
    const from = this.history.has(id) ? record.state : null;
    Object.assign(record, { state: to, updatedAt: at, stateReason: to === "failed" ? "the app did not start" : null });
    if (to === "suspended") record.snapshot = { generation: "1", created_at: at, size_bytes: 268_500_000 };
    this.history.set(id, [...(this.history.get(id) ?? []), { at, type, from, to, details: {} }]);
    for (const listener of this.listeners) listener(record);
    for (const follower of this.followers) follower();
    for (const waiter of this.waiters) if (waiter.id === id) waiter.reached(to);
  }
}

function newRecord(app: string, id: string, name: string, input: CreateMachine): MachineRecord {
  const now = new Date().toISOString();
  return {
    id,
    app,
    name,
    state: "created",
    goal: null,
    region: input.region ?? "local",
    version: version(),
    config: input.config,
    imageDigest: `sha256:${"0".repeat(64)}`,
    bundleVersion: "1",
    address: "10.0.0.2",
    snapshot: null,
    capturing: null,
    coldReason: "first start",
    resetLayer: true,
    pending: null,
    lastBoot: null,
    stateReason: null,
    restarts: 0,
    createdAt: now,
    updatedAt: now,
  };
}

function version(): string {
  return `01${randomBytes(12).toString("hex").toUpperCase()}`;
}

function view(record: MachineRecord): MachineView {
  const { memoryMb } = guestSize(record.config);
  const reasons = memoryMb > 2048 ? [`It has ${memoryMb} MB of memory; at most 2048 MB can be suspended.`] : [];
  return {
    record,
    suspend: { eligible: reasons.length === 0, reasons },
    checks: [],
    image: { ref: record.config.image, digest: record.imageDigest },
  };
}
