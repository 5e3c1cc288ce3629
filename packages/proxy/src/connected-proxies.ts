/** The proxies that are connected to the coordinator: what each has open, and what they agree to. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineLoad, ToProxy } from "./messages.ts";

/** A proxy, as the coordinator sees it. */
export interface ConnectedProxy {
  send(message: ToProxy): void;
  /** Whether it is told about the machines of other hosts. */
  readonly everywhere: boolean;
  /** Whether visitors reach it. Others carry what comes from machines, or from other hosts. */
  readonly forVisitors: boolean;
  /** What the proxy has open, by machine; machines with nothing open are left out. */
  readonly loads: Map<string, MachineLoad>;
  /** The ports for TCP connections that it cannot open, each with the reason. */
  closedPorts: Readonly<Record<string, string>>;
  /** The ports at which it takes connections of visitors. */
  takenPorts: readonly number[];
}

/** A proxy that does not answer within this time, in milliseconds, is assumed to need the machine. */
const ANSWER_MS = 1000;
/** A little longer than proxies take to report their loads (REPORT_MS in load-reporter.ts), in milliseconds. */
const REPORT_MS = 30;

export class ConnectedProxies {
  readonly #proxies = new Set<ConnectedProxy>();
  readonly #questions = new Map<number, (agreed: boolean) => void>();
  readonly #heldBack = new Set<string>();
  #lastQuestion = 0;
  /** Is told when requests to a machine are held back, and when no longer. */
  onHeldBack: (id: string) => void = () => {};

  /** Whether a proxy is there that visitors reach: without one, the platform does not know what they have open. */
  get hasOneForVisitors(): boolean {
    return [...this.#proxies].some(({ forVisitors }) => forVisitors);
  }

  add(send: (message: ToProxy) => void, { everywhere = true, forVisitors = true } = {}): ConnectedProxy {
    const proxy = { send, everywhere, forVisitors, loads: new Map(), closedPorts: {}, takenPorts: [] };
    this.#proxies.add(proxy);
    return proxy;
  }

  remove(proxy: ConnectedProxy): void {
    this.#proxies.delete(proxy);
  }

  /** Why a port for TCP connections is closed at one of the proxies. Undefined if it is open at all. */
  whyClosed(port: number): string | undefined {
    return [...this.#proxies].map(({ closedPorts }) => closedPorts[port]).find((reason) => reason !== undefined);
  }

  /** The ports at which a proxy takes connections of visitors. */
  get takenPorts(): ReadonlySet<number> {
    return new Set([...this.#proxies].flatMap(({ takenPorts }) => takenPorts));
  }

  tellAll(message: ToProxy): void {
    for (const { send } of this.#proxies) send(message);
  }

  /** Tells the proxies that know other hosts' machines, or those that do not. */
  tellThose(everywhere: boolean, message: ToProxy): void {
    for (const proxy of this.#proxies) if (proxy.everywhere === everywhere) proxy.send(message);
  }

  /** The machine's load over all proxies, in the unit of its service. */
  load(id: string): number {
    let total = 0;
    for (const { loads } of this.#proxies) total += loads.get(id)?.load ?? 0;
    return total;
  }

  /** Whether the proxy is there that carries what comes from machines to apps of their networks. */
  get hasOneInside(): boolean {
    return [...this.#proxies].some(({ forVisitors, everywhere }) => !forVisitors && everywhere);
  }

  /** Whether a worker has a connection through which something could wake it. */
  hasWaits(id: string): boolean {
    return [...this.#proxies].some(({ loads }) => (loads.get(id)?.waits ?? 0) > 0);
  }

  /**
   * Lets new requests to a machine wait from now on, although it runs: it is about to leave the host. Returns how to end that.
   */
  holdBack(id: string): () => void {
    this.#heldBack.add(id);
    this.onHeldBack(id);
    return () => {
      this.#heldBack.delete(id);
      this.onHeldBack(id);
    };
  }

  /** Whether new requests to the machine have to wait. */
  isHeldBack(id: string): boolean {
    return this.#heldBack.has(id);
  }

  /** Resolves when no request is open on the machine, not counting upgraded connections, or after the timeout. */
  async finished(id: string, timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    const isOpen = () => [...this.#proxies].some(({ loads }) => (loads.get(id)?.requests ?? 0) > 0);
    if (this.#proxies.size === 0) return;
    // Proxies report in a moment what they began just before the machine left the rotation.
    do await delay(REPORT_MS);
    while (isOpen() && performance.now() < end);
  }

  /** Notes what a proxy has open on a machine. */
  setLoad(proxy: ConnectedProxy, id: string, load: MachineLoad): void {
    if (load.load > 0 || load.requests > 0 || (load.waits ?? 0) > 0) proxy.loads.set(id, load);
    else proxy.loads.delete(id);
  }

  /** Tells each proxy the load that the others put on the machine. */
  tellOthers(id: string): void {
    if (this.#proxies.size < 2) return;
    const total = this.load(id);
    for (const { send, loads } of this.#proxies)
      send({ kind: "others", loads: { [id]: total - (loads.get(id)?.load ?? 0) } });
  }

  /** Asks every proxy to let go of a machine that may be idle. Resolves with whether all agreed. */
  async askToDrain(id: string, idleMs: number): Promise<boolean> {
    const answers = await Promise.all(
      [...this.#proxies].map((proxy) => this.#ask((question) => proxy.send({ kind: "drain", id, question, idleMs }))),
    );
    return answers.every(Boolean);
  }

  /** Tells every proxy which challenges are open. Resolves once all know, or have had time to. */
  async tellChallenges(open: Omit<Extract<ToProxy, { kind: "challenges" }>, "kind" | "question">): Promise<void> {
    const tell = (proxy: ConnectedProxy) =>
      this.#ask((question) => proxy.send({ kind: "challenges", question, ...open }));
    await Promise.all([...this.#proxies].map(tell));
  }

  /**
   * Takes a machine from the proxies, unless a request needs it, and gives it back unless `sleep` says that it goes to
   * sleep. Resolves with whether no request needed it.
   */
  async letGo(id: string, sleep: () => boolean): Promise<boolean> {
    const agreed = await this.askToDrain(id, 0);
    let sleeps = false;
    try {
      sleeps = agreed && sleep();
    } finally {
      if (!sleeps) this.tellAll({ kind: "undrain", id });
    }
    return agreed;
  }

  /** A proxy answered a question. */
  answered(question: number, agreed: boolean): void {
    this.#questions.get(question)?.(agreed);
  }

  /** Sends a question. Resolves with the answer; false if there is none in time. */
  #ask(send: (question: number) => void): Promise<boolean> {
    const question = (this.#lastQuestion += 1);
    return new Promise((resolve) => {
      const answer = (agreed: boolean) => {
        clearTimeout(timer);
        this.#questions.delete(question);
        resolve(agreed);
      };
      const timer = setTimeout(() => answer(false), ANSWER_MS);
      this.#questions.set(question, answer);
      send(question);
    });
  }
}
