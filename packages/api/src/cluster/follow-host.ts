/** Follows the lines of one other host for as long as the client reads, also when that host does not answer for a while. */
import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { LogEntry } from "@hibernaut/machines";

/** How often a host that was lost is asked again, and how soon a host is noticed to be away, in milliseconds. */
const RETRY_MS = 1000;
/** A token that was refused once may be so new that the host has not heard of it. */
const MOST_REFUSALS = 2;
/** Lines of two machines of a host may arrive a little out of order: so much before the last one is asked for again. */
const OVERLAP_MS = 1000;

export interface FollowedHost {
  name: string;
  /** The answer to the client's own request. Undefined when the host did not answer, which the client has been told. */
  first: IncomingMessage | undefined;
  /**
   * Asks for the lines since a time, RFC 3339. Resolves with `gone` when the host has nothing to follow any more, and with
   * `refused` when it does not take the client's token.
   */
  ask(since: string): Promise<IncomingMessage | "gone" | "refused">;
  /** Whether the host has its lease. Undefined once it has left the cluster. */
  isUp(): boolean | undefined;
  /** The ids of machines whose lines are missing without the host, or none if the client does not want to know. */
  machines(): readonly string[];
  /** The client went away. */
  signal: AbortSignal;
}

/**
 * Yields lines with their ends. When the host is lost, a line of each of its machines says so; once it answers again, another
 * one, and what was printed meanwhile. Ends when the host has nothing more to follow, and when it refuses the token, which is
 * said as well. Never throws.
 */
export async function* followHost(host: FollowedHost): AsyncGenerator<string, void> {
  const { name, signal } = host;
  const passed = new Passed(timeOf(host.first));
  let response = host.first;
  let isTold = response === undefined;
  let refusals = 0;
  const say = (text: string) => {
    const at = new Date().toISOString();
    return host
      .machines()
      .map((machine) => lineOf({ at, machine, stream: "platform", text }))
      .join("");
  };
  while (!signal.aborted) {
    if (response !== undefined) {
      const began = performance.now();
      const isWhole = yield* linesOf(response, { passed, isUp: host.isUp });
      // A host that is restarted ends its answers in order, too, but not at once after it has begun them.
      if (isWhole && performance.now() - began < RETRY_MS) return;
    }
    passed.interrupt();
    await delay(RETRY_MS, undefined, { signal }).catch(() => {});
    const isUp = host.isUp();
    if (signal.aborted || isUp === undefined) return;
    const answer = isUp ? await host.ask(passed.since).catch(() => undefined) : undefined;
    if (answer === "gone") return;
    refusals = answer === "refused" ? refusals + 1 : 0;
    if (refusals === MOST_REFUSALS) {
      yield say(
        `Host ${name} does not take this token: it was revoked, or has expired. Lines of this machine end here.`,
      );
      return;
    }
    response = answer === "refused" ? undefined : answer;
    if (refusals > 0 || (response === undefined) === isTold) continue;
    isTold = response === undefined;
    yield say(
      isTold
        ? `Host ${name} does not answer. Lines of this machine are missing until it does.`
        : `Host ${name} answers again.`,
    );
  }
}

/** Yields what was not passed on before. Returns whether the host has ended its answer in order. */
async function* linesOf(
  response: IncomingMessage,
  { passed, isUp }: { passed: Passed } & Pick<FollowedHost, "isUp">,
): AsyncGenerator<string, boolean> {
  // A host that loses its power says nothing, and its connection stays open.
  const look = setInterval(() => {
    if (isUp() !== true) response.destroy();
  }, RETRY_MS).unref();
  let rest = "";
  try {
    response.setEncoding("utf8");
    for await (const piece of response as AsyncIterable<string>) {
      const texts = (rest + piece).split("\n");
      rest = texts.pop() ?? "";
      const news = texts.filter((text) => text !== "" && !passed.before(JSON.parse(text) as LogEntry));
      yield news.map((text) => `${text}\n`).join("");
    }
    return response.complete;
  } catch {
    return false; // it went away
  } finally {
    clearInterval(look);
    response.destroy();
  }
}

/** What was passed on, so that it is not repeated after an interruption. Within a machine, times never go back. */
class Passed {
  /** By machine: the time of its last line, and how many of its lines have that time. */
  readonly #last = new Map<string, { at: string; lines: number }>();
  /** The same when the host was lost: these come again. */
  #known = new Map<string, { at: string; lines: number }>();
  readonly #began: string;
  #newest: string;

  /** @param began the time of the host when it began to answer, RFC 3339 */
  constructor(began: string) {
    this.#began = began;
    this.#newest = began;
  }

  /** From when on to ask again, RFC 3339. */
  get since(): string {
    const since = new Date(Date.parse(this.#newest) - OVERLAP_MS).toISOString();
    return since < this.#began ? this.#began : since;
  }

  /** The host was lost: what comes next may have come before. */
  interrupt(): void {
    this.#known = new Map([...this.#last].map(([machine, last]) => [machine, { ...last }]));
  }

  /** Whether the line was passed on before. Otherwise it counts as passed on from now on. */
  before({ machine, at }: LogEntry): boolean {
    const known = this.#known.get(machine);
    if (known !== undefined && at < known.at) return true;
    if (known !== undefined && at === known.at && known.lines > 0) {
      known.lines -= 1;
      return true;
    }
    const last = this.#last.get(machine);
    this.#last.set(machine, { at, lines: last?.at === at ? last.lines + 1 : 1 });
    if (at > this.#newest) this.#newest = at;
    return false;
  }
}

/** When the host began to answer, by its own clock, in whole seconds. */
function timeOf(response: IncomingMessage | undefined): string {
  const { date = "" } = response?.headers ?? {};
  const at = Date.parse(date);
  return new Date(Number.isNaN(at) ? Date.now() : at).toISOString();
}

function lineOf(entry: LogEntry): string {
  return `${JSON.stringify(entry)}\n`;
}
