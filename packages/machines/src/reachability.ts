/** Whether requests can reach an app, judged by where it listens, and if not, how to fix that. */
import { isLoopback, type Listener, listenerText } from "@hibernaut/guest";

/** An app may open its ports one after the other, so its ports count once they have not changed for this long. */
const LOOPBACK_SETTLES_MS = 1_000;
/** An app that opens another port first, for example for metrics, may need longer for the port of its service. */
const OTHER_PORT_SETTLES_MS = 5_000;
/**
 * A judgement that has changed before must hold for longer each time, up to this: it is told as an event, and the guest
 * decides how often it changes.
 */
const LONGEST_SETTLES_MS = 10_000;

/** How many of an app's addresses a sentence names. An app has a handful. */
const MOST_NAMED = 5;

/** Why no request reaches the app, and how long that must hold before it is reported, in milliseconds. */
interface Unreachable {
  why: string;
  settlesMs: number;
}

/**
 * Returns what keeps requests from a port. Undefined when each of `ports` is reachable, and when nothing listens at
 * all: an app that is not that far yet is not misconfigured.
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
  const [other] = others;
  if (other === undefined) return undefined;
  if (others.every(isLoopback))
    return {
      why: `nothing listens on port ${missing}, which is the port of the service, and the app listens on ${listText(others)} only, which nothing outside the machine reaches: have it listen on 0.0.0.0:${missing}, or have it listen on 0.0.0.0:${other.port} and name ${other.port} as the port of the service (--port, or internal_port in the app file)`,
      settlesMs: OTHER_PORT_SETTLES_MS,
    };
  return {
    why: `nothing listens on port ${missing}, which is the port of the service, but the app listens on ${listText(others)}: name ${isOne(others) ? "that port" : "the one for requests"} as the service's (--port, or internal_port in the app file), or have the app listen on 0.0.0.0:${missing}`,
    settlesMs: OTHER_PORT_SETTLES_MS,
  };
}

/** Judges where the app of one guest listens, and reports each change of the judgement. */
export class Reachability {
  readonly #ports: readonly number[];
  readonly #tell: (why: string | undefined) => void;
  readonly #judged = Promise.withResolvers<string>();
  #why: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pending: string | undefined;
  #listeners: readonly Listener[] = [];
  /** How often requests were found not to reach the app. */
  #found = 0;

  /**
   * @param ports the ports that the machine's services promise
   * @param tell called each time the judgement changes
   * @param before the judgement of an earlier platform process
   */
  constructor(ports: readonly number[], tell: (why: string | undefined) => void, before?: string) {
    this.#ports = ports;
    this.#tell = tell;
    this.#why = before;
  }

  /** Why no request reaches the app. Undefined while that is unknown, and when requests do reach it. */
  get why(): string | undefined {
    return this.#why;
  }

  /** Where programs listen while requests do not reach the app. Undefined while they do, or that is unknown. */
  get elsewhere(): readonly Listener[] | undefined {
    return this.#why === undefined ? undefined : this.#listeners;
  }

  /** Resolves with the reason once the app is known to be unreachable; otherwise never settles. */
  get judged(): Promise<string> {
    return this.#judged.promise;
  }

  /** Takes note of where programs in the guest listen now. */
  listening(listeners: readonly Listener[]): void {
    const found = whyUnreachable(this.#ports, listeners);
    this.#listeners = listeners;
    if (found !== undefined && found.why === this.#pending) return;
    clearTimeout(this.#timer);
    this.#pending = found?.why;
    if (found === undefined) return this.#set(undefined);
    const settlesMs = Math.min(Math.max(1, this.#found) * found.settlesMs, LONGEST_SETTLES_MS);
    this.#timer = setTimeout(() => this.#set(found.why), settlesMs).unref();
  }

  /** Takes note that every port is reachable. */
  ready(): void {
    this.listening(this.#ports.map((port) => ({ address: "0.0.0.0", port })));
  }

  /** Stops judging: the guest has ended. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #set(why: string | undefined): void {
    if (why !== undefined) this.#judged.resolve(why);
    if (why === this.#why) return;
    if (why !== undefined) this.#found += 1;
    this.#why = why;
    this.#tell(why);
  }
}

function isOne(listeners: readonly Listener[]): boolean {
  return new Set(listeners.map(({ port }) => port)).size === 1;
}

function listText(listeners: readonly Listener[]): string {
  const all = [...new Set(listeners.map(listenerText))];
  const more = all.length - MOST_NAMED;
  const texts = more > 0 ? [...all.slice(0, MOST_NAMED), `${more} more`] : all;
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}
