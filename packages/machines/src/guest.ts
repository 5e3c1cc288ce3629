/** The guest of one machine: its VMM, the connection to the agent in it, and how its app ended. */
import { GuestAgent, type GuestExit, type GuestStreams } from "@hibernaut/guest";
import { type Vmm, VmmKilled, VmmSilent } from "@hibernaut/hypervisor";
import { never, within } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Logger } from "./dependencies.ts";
import type { LogStream } from "./logs/entry.ts";
import type { MachineLog } from "./logs/machine-log.ts";
import { Reachability } from "./reachability.ts";
import { SeldomLog } from "./seldom-log.ts";

/** Streams of the agent's log frames. */
const APP_STREAMS: Readonly<Record<number, Exclude<LogStream, "platform">>> = { 1: "stdout", 2: "stderr" };

/** A VMM and the connection to the agent in it. */
export interface LiveGuest {
  vmm: Vmm;
  agent: GuestAgent;
  reachability: Reachability;
  /** Once it is to end: when no request is open any more, and until when they have time, on this process's clock. */
  finishing?: { requests: Promise<void>; until: number };
  /** After that: how the app was asked to exit, a signal by number, and when it is killed, on the same clock. */
  asked?: { signal: number; killAt: number };
}

/** A paused VMM that is kept as a cache of the snapshot that was taken of it. */
export interface KeptGuest extends LiveGuest {
  /** The snapshot's. */
  generation: string;
  /** The guest's clock when it was paused, in milliseconds since 1970. */
  clockMs: number;
}

/** What a guest reports by itself, always about the one that is attached. */
interface GuestListener {
  /** The app ended, or the VMM is gone although nobody here ended it: see {@link MachineGuest.exit} and `lost`. */
  ended(): void;
  /** Undefined once the guest runs again. */
  stalled(why: string | undefined): void;
  /** Why no request reaches the app; undefined when one does. */
  reachability(why: string | undefined): void;
  /** The kept VMM runs again, or has ended, for this reason. */
  unkept(reason?: "discarded" | "gone"): void;
  agentFault(fault: "refused" | "broken"): void;
}

interface MachineGuestOptions {
  machineId: string;
  /** Outlives guests. */
  streams: GuestStreams;
  machineLog: MachineLog;
  log: Logger;
  /** How long the agent may take to open its channel, in milliseconds. */
  channelTimeoutMs: number;
  /** Rejects while a VMM of the machine that was killed has not ended. */
  requireEnded(): Promise<void>;
  listener: GuestListener;
}

export class MachineGuest {
  readonly #options: MachineGuestOptions;
  #live: LiveGuest | undefined;
  #kept: KeptGuest | undefined;
  #exit = Promise.withResolvers<GuestExit>();
  #exitValue: GuestExit | undefined;
  #lost = false;

  constructor(options: MachineGuestOptions) {
    this.#options = options;
  }

  /** Undefined while the machine has no guest. */
  get live(): LiveGuest | undefined {
    return this.#live;
  }

  /** The paused VMM of a suspended machine. It is not the machine's guest until {@link wakeKept}. */
  get kept(): KeptGuest | undefined {
    return this.#kept;
  }

  /** How the app of the last guest ended, once it did. */
  get exit(): GuestExit | undefined {
    return this.#exitValue;
  }

  /** Whether the VMM of the present guest is gone, although nobody here ended it. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Why the VMM of the present guest is gone, if its guest could not continue: see `Vmm.failure`. */
  get failure(): string | undefined {
    return this.#live?.vmm.failure;
  }

  /** Settles when the app of the present guest ends. */
  exited(): Promise<GuestExit> {
    return this.#exit.promise;
  }

  /**
   * Connects to the agent and makes the VMM's guest the machine's. Ends the VMM if that fails, and rejects with
   * {@link VmmKilled} if it was gone already.
   *
   * @param ports that the app's services promise
   * @param unreachable what an earlier platform found out about them
   */
  async attach(vmm: Vmm, ports: readonly number[], unreachable?: string): Promise<LiveGuest> {
    this.#exit = Promise.withResolvers();
    this.#exitValue = undefined;
    this.#lost = false;
    try {
      const { channelTimeoutMs, streams } = this.#options;
      const channel = await vmm.openChannel(within(never(), channelTimeoutMs, "reaching the agent"));
      this.#live = this.#listen(vmm, new GuestAgent(channel, streams), ports, unreachable);
    } catch (error) {
      const gone = await isGone(vmm);
      await vmm.kill();
      throw gone ? new VmmKilled(vmm.failure ?? messageOf(error)) : error;
    }
    vmm.onStalled = (why) => this.#live?.vmm === vmm && this.#options.listener.stalled(why);
    background(
      vmm.exited.then(() => this.#gone(vmm)),
      "noticing the end of a guest",
    );
    return this.#live;
  }

  /** Keeps the paused guest, of which a snapshot was published. From now on, the machine has no guest. */
  keep(snapshot: Pick<KeptGuest, "generation" | "clockMs">): void {
    const live = this.#live;
    if (live === undefined) return;
    this.#kept = { ...live, ...snapshot };
    this.forget();
    this.#options.machineLog.rest();
  }

  /** Makes the kept VMM's guest the machine's again. Call it once the snapshot is consumed. */
  wakeKept(): LiveGuest | undefined {
    const kept = this.#kept;
    if (kept === undefined) return undefined;
    const { vmm, agent, reachability } = kept;
    this.#kept = undefined;
    this.#live = { vmm, agent, reachability };
    this.#options.listener.unkept();
    return this.#live;
  }

  /**
   * Ends the guest, if there is one, or the kept VMM, and waits until it is gone. Returns why, if it could not continue
   * anyway. Rejects with `VmmHeld`, also when it is called again, until the VMM has ended.
   */
  async kill(): Promise<string | undefined> {
    const guest = this.#live ?? this.#kept;
    if (this.#kept !== undefined) this.#options.listener.unkept("discarded");
    this.forget();
    this.#kept = undefined;
    try {
      await guest?.vmm.kill();
    } finally {
      guest?.agent.close();
      this.#options.machineLog.rest();
    }
    await this.#options.requireEnded();
    return guest?.vmm.failure;
  }

  /** Whether the VMM ended although nobody here ended it. */
  async wasKilled(): Promise<boolean> {
    return this.#live !== undefined && isGone(this.#live.vmm);
  }

  /** The VMM has ended by itself: there is no guest any more. */
  forget(): void {
    this.#live = undefined;
    this.#lost = false;
  }

  /** Lets go of the guest, which keeps running. What becomes of it is for the next platform to find out. */
  release(): void {
    const live = this.#live;
    this.#live = undefined;
    live?.agent.close();
    live?.vmm.release();
  }

  /** Remembers how the app ended: reported by the agent, or found out after a restart of the platform. */
  rememberExit(exit: GuestExit): void {
    this.#options.machineLog.flush(); // its last words, before what is said of its end
    this.#exitValue = exit;
    this.#exit.resolve(exit);
  }

  #listen(vmm: Vmm, agent: GuestAgent, ports: readonly number[], unreachable: string | undefined): LiveGuest {
    const { machineLog, log, machineId, listener } = this.#options;
    agent.onLog = (number, data) => {
      const stream = APP_STREAMS[number];
      if (stream !== undefined) machineLog.output(stream, data);
    };
    agent.onPrinted = (bytes) => machineLog.printed(bytes);
    const refusals = new SeldomLog((fields) =>
      log.warn({ machine: machineId, ...fields }, "the agent refused something"),
    );
    agent.onError = (message) => {
      listener.agentFault("refused");
      refusals.add(message);
    };
    agent.onBroken = (reason) => {
      listener.agentFault("broken");
      log.warn({ machine: machineId, reason }, "the channel to a guest was ended");
      machineLog.platform(`The platform ended its channel to the guest: ${reason}. Restart the machine.`);
    };
    agent.onExit = (exit) => {
      this.rememberExit(exit);
      listener.ended();
    };
    const changed = (why: string | undefined) => {
      if (this.#live?.agent === agent) listener.reachability(why);
    };
    const reachability = new Reachability(ports, changed, unreachable);
    agent.onListening = (listeners) => reachability.listening(listeners);
    void agent.ready(never()).then(
      () => reachability.ready(),
      () => reachability.close(), // the guest ended first
    );
    return { vmm, agent, reachability };
  }

  #gone(vmm: Vmm): void {
    if (this.#kept?.vmm === vmm) {
      this.#kept.agent.close();
      this.#kept = undefined;
      this.#options.listener.unkept("gone");
    }
    if (this.#live?.vmm !== vmm) return;
    this.#live.agent.close();
    this.#lost = true;
    this.#options.listener.ended();
  }
}

/** One that only does not answer in time may be alive. */
function isGone(vmm: Vmm): Promise<boolean> {
  return vmm.state().then(
    () => false,
    (error: unknown) => !(error instanceof VmmSilent),
  );
}
