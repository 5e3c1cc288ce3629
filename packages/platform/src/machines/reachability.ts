/** Whether requests can reach an app, by where it listens; and why not, in words that help. */
import { isLoopback, type Listener, listenerText } from "../guest/listening.ts";

/** An app may open its ports one after the other: what it listens on counts once it has not changed for this long. */
const LOOPBACK_SETTLES_MS = 1_000;
/** One that opens another port first, for metrics say, may need longer for its own. */
const OTHER_PORT_SETTLES_MS = 5_000;

/** Why no request reaches the app, and for how long that must hold before it is said. */
export interface Unreachable {
  why: string;
  settlesMs: number;
}

/**
 * What keeps requests from a port: undefined when each of `ports` is reachable, and when nothing listens at all, for
 * an app that has not come that far is not misconfigured.
 */
export function whyUnreachable(ports: readonly number[], listeners: readonly Listener[]): Unreachable | undefined {
  const missing = ports.find((port) => !listeners.some((one) => one.port === port && !isLoopback(one)));
  if (missing === undefined) return undefined;
  const loopback = listeners.find(({ port }) => port === missing);
  if (loopback !== undefined)
    return {
      why: `the app listens on ${listenerText(loopback)} only, which nothing outside the machine reaches: have it listen on 0.0.0.0:${missing}`,
      settlesMs: LOOPBACK_SETTLES_MS,
    };
  const others = listeners.filter(({ port }) => !ports.includes(port));
  if (others.length === 0) return undefined;
  return {
    why: `nothing listens on port ${missing}, which is the port of the service, but the app listens on ${listText(others)}: name that port as the service's (--port, or internal_port in the app file), or have the app listen on 0.0.0.0:${missing}`,
    settlesMs: OTHER_PORT_SETTLES_MS,
  };
}

/** Judges what the agent tells of one guest, and tells when the judgement changes. */
export class Reachability {
  readonly #ports: readonly number[];
  readonly #tell: (why: string | undefined) => void;
  readonly #judged = Promise.withResolvers<string>();
  #why: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pending: string | undefined;

  /**
   * @param ports that the services of the machine promise
   * @param tell is told each time that the judgement changes
   * @param before the judgement of an earlier platform
   */
  constructor(ports: readonly number[], tell: (why: string | undefined) => void, before?: string) {
    this.#ports = ports;
    this.#tell = tell;
    this.#why = before;
  }

  /** Why no request reaches the app; undefined while that is not known, or one does. */
  get why(): string | undefined {
    return this.#why;
  }

  /** Settles with the reason once the app is known to be unreachable; never, if it is not. */
  get judged(): Promise<string> {
    return this.#judged.promise;
  }

  /** The agent told where programs listen. */
  listening(listeners: readonly Listener[]): void {
    const found = whyUnreachable(this.#ports, listeners);
    if (found !== undefined && found.why === this.#pending) return;
    clearTimeout(this.#timer);
    this.#pending = found?.why;
    if (found === undefined) return this.#set(undefined);
    this.#timer = setTimeout(() => this.#set(found.why), found.settlesMs).unref();
  }

  /** Every port is reachable. */
  ready(): void {
    this.listening(this.#ports.map((port) => ({ address: "0.0.0.0", port })));
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #set(why: string | undefined): void {
    if (why !== undefined) this.#judged.resolve(why);
    if (why === this.#why) return;
    this.#why = why;
    this.#tell(why);
  }
}

function listText(listeners: readonly Listener[]): string {
  const texts = [...new Set(listeners.map(listenerText))];
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}
