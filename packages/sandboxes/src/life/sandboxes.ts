/** The life of sandboxes: machines of one app each, born from templates, that end when their time is over. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import { given } from "@hibernaut/lib/given";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineView, TemplateView } from "@hibernaut/machines";
import type { SandboxNeeds } from "../contract.ts";
import { isMissing, Refusal } from "../failure.ts";
import { giveToUser } from "../volume/give-to-user.ts";
import type { SandboxVolumes } from "../volume/volumes.ts";
import { type ChosenBirth, type ChosenSandbox, endAfter, heirOf, requireTimeout, sandboxOf } from "./chosen.ts";
import { type ChosenEgress, egressOf } from "./egress.ts";
import { Expiry } from "./expiry.ts";
import { DEFAULT_TIMEOUT_S, GONE_TIMEOUT_MS, PAUSED_TIMEOUT_MS, RUNNING_TIMEOUT_MS } from "./limits.ts";
import type { TemplateNames } from "./names.ts";
import { changeNetwork, sealedRules } from "./network.ts";
import { FILES_ONLY, pauseRunning } from "./pause.ts";
import { Trusting } from "./trusting.ts";
import { asSandbox, isSteady, type SandboxView, stateOf } from "./view.ts";
import { missing, waitFor } from "./wait.ts";

/** Every method throws a {@link Refusal} with 404 for a sandbox that the app does not have. */
export class Sandboxes {
  readonly #needs: SandboxNeeds;
  readonly #expiry: Expiry;
  readonly #names: TemplateNames;
  readonly #trusting: Trusting;
  readonly #volumes: Pick<SandboxVolumes, "hold">;

  /** `names`: what clients call templates. */
  constructor(needs: SandboxNeeds, names: TemplateNames, volumes: Pick<SandboxVolumes, "hold">) {
    this.#needs = needs;
    this.#names = names;
    this.#trusting = new Trusting(needs);
    this.#volumes = volumes;
    this.#expiry = new Expiry({ all: () => this.#all(), end: (sandbox) => this.#end(sandbox), log: needs.log });
  }

  /** Ends those whose time was over while the platform was down, and from now on each in time. */
  start(): void {
    this.#expiry.look();
  }

  close(): void {
    this.#expiry.close();
  }

  /** Makes a sandbox, and resolves once it runs. Then nothing is left of one that did not get so far. */
  async create(app: string, chosen: ChosenSandbox, signal: AbortSignal): Promise<SandboxView> {
    const { record } = await this.begin(app, chosen, {}, signal);
    return this.#born(app, record.id, signal);
  }

  /** Makes a sandbox, whose time begins now, and resolves once it is stored. */
  async begin(app: string, chosen: ChosenSandbox, birth: ChosenBirth, signal: AbortSignal): Promise<MachineView> {
    const { network: own, ...facts } = sandboxOf(chosen, Date.now());
    const rules = sealedRules(app, chosen.added, this.#needs);
    const sandbox = { ...facts, ...((own ?? rules) && { network: { ...own, ...rules } }) };
    const { template } = this.requireTemplate(app, chosen.template);
    const { network, allowInternetAccess } = chosen;
    const egress = egressOf({ allowOut: network?.allow_out, denyOut: network?.deny_out, allowInternetAccess });
    const { volumes = [] } = chosen;
    using held = volumes.length === 0 ? undefined : await this.#volumes.hold(app, volumes);
    const born = { ...birth, sandbox, ...given({ egress, mounts: held?.mounts }) };
    const bear = (id: string) => this.#needs.resources.templates.bear(app, id, born, signal);
    const view = await bear(template.id).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
      // A build has replaced it meanwhile.
      const now = this.requireTemplate(app, chosen.template).template.id;
      if (now === template.id) throw error;
      return bear(now);
    });
    this.#expiry.look();
    return view;
  }

  list(app: string): SandboxView[] {
    return this.#needs.resources.machines.list(app).flatMap((machine) => asSandbox(machine) ?? []);
  }

  get(app: string, id: string): SandboxView {
    const found = this.find(id);
    if (found === undefined || found.record.app !== app) throw missing(id);
    return found;
  }

  /** The sandbox with exactly this id, whose app is not known yet. */
  find(id: string): SandboxView | undefined {
    const record = this.#needs.resources.machines.recordOf(id);
    return record && asSandbox({ record });
  }

  /** Resolves once it is gone. */
  async kill(app: string, id: string): Promise<void> {
    this.get(app, id);
    const { machines } = this.#needs.resources;
    machines.destroy(app, id, { force: true });
    await machines.wait(app, id, ["destroyed"], { timeoutMs: GONE_TIMEOUT_MS }).catch((error: unknown) => {
      // It is destroyed in any case, and nobody can use it.
      if (!isMissing(error))
        this.#needs.log.warn({ machine: id, reason: messageOf(error) }, "a killed sandbox takes long");
    });
  }

  /**
   * Wakes the sandbox if it is paused, without `memory` from its files alone, and lets it live that long from now. The time of a
   * running one is never shortened. Resolves with whether it was paused.
   */
  async connect(
    app: string,
    id: string,
    { timeoutS, memory = true }: { timeoutS: number; memory?: boolean | undefined },
    signal: AbortSignal,
  ): Promise<{ view: SandboxView; resumed: boolean }> {
    requireTimeout(timeoutS);
    if (!memory && stateOf(this.get(app, id)) === "paused") {
      const { machines } = this.#needs.resources;
      // One that falls asleep would continue.
      await waitFor(machines, app, id, ["settled"], { timeoutMs: PAUSED_TIMEOUT_MS, signal });
      machines.dropMemory(app, id);
    }
    const before = this.get(app, id);
    const resumed = stateOf(before) === "paused";
    const ends = endAfter(timeoutS, Date.now());
    if (resumed || ends > before.record.sandbox.ends_at)
      this.change(before, { ends_at: ends, timeout_s: timeoutS, paused: false });
    return { view: await this.awake(app, id, signal), resumed };
  }

  /** Wakes the sandbox if it sleeps, and resolves once it runs. */
  async awake(app: string, id: string, signal: AbortSignal, requester: { by?: "proxy" } = {}): Promise<SandboxView> {
    const { machines } = this.#needs.resources;
    if (this.get(app, id).record.state !== "running") machines.start(app, id, { reason: "sandbox", ...requester });
    return this.#running(app, id, signal);
  }

  /** Wakes a paused sandbox because of a request, and gives it its time again, but enough to answer. */
  wake(sandbox: SandboxView, signal: AbortSignal): Promise<SandboxView> {
    const { app, id, sandbox: facts } = sandbox.record;
    const seconds = Math.max(facts.timeout_s, DEFAULT_TIMEOUT_S);
    this.change(sandbox, { ends_at: endAfter(seconds, Date.now()), paused: false });
    return this.awake(app, id, signal, { by: "proxy" });
  }

  /** Sets how long it lives from now, or `atLeast` that long. */
  setTimeout(app: string, id: string, timeoutS: number, { atLeast = false } = {}): void {
    requireTimeout(timeoutS);
    const sandbox = this.get(app, id);
    const ends = endAfter(timeoutS, Date.now());
    if (!atLeast || ends > sandbox.record.sandbox.ends_at) this.change(sandbox, { ends_at: ends, timeout_s: timeoutS });
  }

  /** Replaces where it may connect to, and what is added to its requests. Rejects as {@link changeNetwork} does. */
  async setEgress(app: string, id: string, chosen: ChosenEgress): Promise<void> {
    const needs = this.#needs;
    const own = { needs, find: this.find.bind(this), change: this.change.bind(this) };
    await changeNetwork(this.get(app, id), chosen, own);
    const now = this.get(app, id);
    if (now.record.state === "running") await this.#trusting.look(now);
  }

  /**
   * Suspends it to a snapshot, or without `memory` stops it with its disk; one that is starting is waited for. Rejects with 409
   * when it is paused already, and as {@link pauseRunning} does when it is not paused afterwards.
   */
  async pause(app: string, id: string, { memory }: { memory: boolean }, signal: AbortSignal): Promise<void> {
    const { machines } = this.#needs.resources;
    const begin = async (sandbox: SandboxView) => {
      if (stateOf(sandbox) === "paused") throw new Refusal(409, `Sandbox ${id} is paused already.`);
      this.change(sandbox, { paused: true });
      try {
        await pauseRunning(machines, sandbox, memory, signal);
      } catch (error) {
        // Only what was changed here is changed back: until then, the sandbox may be another app's.
        const now = this.find(id);
        if (now !== undefined && stateOf(now) === "running") this.change(now, { paused: false });
        throw error;
      }
    };
    await this.whenSteady(app, id, begin, signal);
  }

  /**
   * Does `work` as soon as it runs, or sleeps: one that starts or falls asleep has no state that could be kept. Rejects with
   * 503 when others keep changing it.
   */
  async whenSteady<T>(
    app: string,
    id: string,
    work: (sandbox: SandboxView) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const deadline = performance.now() + RUNNING_TIMEOUT_MS;
    while (performance.now() < deadline) {
      const view = this.get(app, id);
      // Without a wait in between: others wait for the same moment.
      if (isSteady(view)) return work(view);
      if (stateOf(view) === "running") await this.awake(app, id, signal);
      else
        await waitFor(this.#needs.resources.machines, app, id, ["settled"], { timeoutMs: PAUSED_TIMEOUT_MS, signal });
    }
    throw new Refusal(503, `Sandbox ${id} is woken and paused all the time. Try again later.`);
  }

  /** Forks it: each fork is a sandbox of its own that lives that long. The sandbox itself runs on. */
  async fork(app: string, id: string, { count, timeoutS }: { count: number; timeoutS: number }, signal: AbortSignal) {
    requireTimeout(timeoutS);
    const begin = ({ record }: SandboxView) => {
      const sandbox = heirOf(record.sandbox, timeoutS, Date.now());
      return this.#needs.resources.forks.fork(app, id, { count, sandbox }, signal);
    };
    const born = await this.whenSteady(app, id, begin, signal);
    return Promise.allSettled(born.map(({ record }) => this.#born(app, record.id, signal)));
  }

  /** Returns the template that `word` means: a name with or without a tag, or an id. Throws 404. */
  requireTemplate(app: string, word: string): TemplateView {
    const name = nameOf(word);
    const built = this.#names.find(app, word);
    try {
      if (built !== undefined) return this.#needs.resources.templates.get(app, built);
      return this.#needs.resources.templates.get(app, name);
    } catch (error) {
      if (!isMissing(error) && !isHibernautError(error, "invalid_argument")) throw error;
      const advice = name === "base" ? ` Make it with \`hibernaut sandbox template base --app ${app}\`.` : "";
      throw new Refusal(404, `There is no template '${name.slice(0, 80)}'.${advice}`);
    }
  }

  /** Ends those whose time is over. Call it when there are others than before. */
  look(): void {
    this.#expiry.look();
  }

  /** All of all apps. */
  #all(): SandboxView[] {
    return this.#needs.resources.machines.records().flatMap((record) => asSandbox({ record }) ?? []);
  }

  /** Waits for a new one. One that does not come up is destroyed: its client does not know it. */
  async #born(app: string, id: string, signal: AbortSignal): Promise<SandboxView> {
    try {
      return await this.#running(app, id, signal);
    } catch (error) {
      this.#destroy(app, id);
      throw error;
    }
  }

  #destroy(app: string, id: string): void {
    try {
      this.#needs.resources.machines.destroy(app, id, { force: true });
    } catch (error) {
      this.#needs.log.warn(
        { machine: id, reason: messageOf(error) },
        "a sandbox that did not come up is not destroyed",
      );
    }
  }

  /** Changes what makes the machine a sandbox, such as when it ends. */
  change({ record }: SandboxView, change: Partial<Sandbox>): void {
    this.#needs.resources.machines.setSandbox(record.app, record.id, { ...record.sandbox, ...change });
    this.#expiry.look();
  }

  async #running(app: string, id: string, signal: AbortSignal): Promise<SandboxView> {
    const { machines } = this.#needs.resources;
    const wait = { timeoutMs: RUNNING_TIMEOUT_MS, signal };
    // Its time counts from the start, also for a client that does not wait.
    const waiting = waitFor(machines, app, id, ["running", "failed", "stopped"], wait);
    const { state } = await waiting.finally(() => this.#expiry.look());
    if (state === "running") {
      const view = this.get(app, id);
      await Promise.all([this.#trusting.look(view), giveToUser(view.record, this.#needs)]);
      return view;
    }
    const why = machines.get(app, id).record.stateReason;
    throw new Refusal(503, `Sandbox ${id} did not come up: it is ${state}${why === null ? "" : `, because ${why}`}.`);
  }

  /** Begins what the time of a sandbox ends with. */
  #end({ record: { app, id, state, sandbox } }: SandboxView): void {
    const { machines } = this.#needs.resources;
    if (sandbox.on_timeout === "kill") {
      machines.destroy(app, id, { force: true });
      return;
    }
    machines.setSandbox(app, id, { ...sandbox, paused: true });
    if (state !== "running") return;
    if (sandbox.keep_memory === false) machines.stopWithLayer(app, id, FILES_ONLY);
    else machines.sleep(app, id, { how: "suspend", otherwise: "stop" }, { reason: "sandbox timeout" });
  }
}

/** The name of a template without the team, which means nothing here, and without the tag. */
export function nameOf(word: string): string {
  return word.replace(/^.*\//, "").replace(/:(?:default|latest)$/, "");
}
