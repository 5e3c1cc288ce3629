/** What an exchange waits for, how long, and how it ends if that does not happen in time. Rules, and the time of one exchange. */
import type { ProxyRefusal } from "../contract.ts";
import type { Limits } from "./limits.ts";
import { ENDINGS, proxyRefusal } from "./refusals.ts";

/** See the diagram in exchange.ts. */
export type ExchangePhase = "seeking" | "waiting" | "answering" | "sending" | "tunnel" | "over";

export type Awaited = "machine" | "requestBody" | "responseHead" | "responseBody" | "client" | "nothing";

/**
 * Returns what an exchange waits for.
 *
 * @param appsTurn whether the app has the whole request, or does not read more of it for now
 * @param clientFull whether the client reads more slowly than the app writes
 */
export function awaited(phase: ExchangePhase, appsTurn: boolean, clientFull: boolean): Awaited {
  switch (phase) {
    case "seeking":
      return "machine";
    case "waiting":
      return appsTurn ? "responseHead" : "requestBody";
    case "answering":
      return clientFull ? "client" : "responseBody";
    case "sending":
      return "client";
    case "tunnel":
    case "over":
      return "nothing";
  }
}

const LIMITS = {
  machine: "findMachineMs",
  requestBody: "requestBodyMs",
  responseHead: "responseHeadMs",
  responseBody: "responseBodyMs",
  client: "clientStallMs",
} as const;

/**
 * Returns how long it may take, in milliseconds.
 *
 * @param elsewhere whether the machine is on another host, whose proxy may have to wake it first
 */
export function patienceMs(what: Awaited, limits: Limits, elsewhere = false): number {
  if (what === "nothing") return Number.POSITIVE_INFINITY;
  const more = elsewhere && what === "responseHead" ? limits.findMachineMs : 0;
  return limits[LIMITS[what]] + more;
}

/** Returns the response to send when the time is up, or, if it is too late for one, the code of the ending. */
export function timeoutEnding(what: Awaited, clientFull: boolean): ProxyRefusal | string {
  if (what === "machine") return proxyRefusal("wake_timeout", "No machine of the app was ready in time.");
  if (what === "client" || clientFull) return ENDINGS.clientStalled;
  if (what === "responseBody") return ENDINGS.upstreamStalled;
  if (what === "responseHead") return proxyRefusal("upstream_timeout", "The app did not respond in time.");
  return proxyRefusal("request_timeout", "The request's body did not arrive in time.");
}

/** The time of one exchange. What it waits for has its whole time again whenever something moves; a body, with each part of it. */
export class Patience {
  #deadline = Number.POSITIVE_INFINITY;
  /** Whether something moved since the deadline was set. */
  #moved = true;
  /** How much of the body had arrived when the time for the next part of it began. Undefined: it is not the client's turn. */
  #partFrom: number | undefined;

  /** Something moved: the time begins again with the next tick. */
  touch(): void {
    this.#moved = true;
  }

  /**
   * Whether the time is up.
   *
   * @param now in ms, as {@link performance.now}
   * @param ms how long it may take
   * @param arrived the bytes of the request's body so far
   * @param part how many of them make a part; 0: any byte does
   */
  isOver(now: number, what: Awaited, ms: number, arrived: number, part: number): boolean {
    const trickles = what === "requestBody" && this.#partFrom !== undefined && arrived - this.#partFrom < part;
    if (this.#moved && !trickles) {
      this.#deadline = now + ms;
      this.#partFrom = what === "requestBody" ? arrived : undefined;
    }
    this.#moved = false;
    return now >= this.#deadline;
  }
}
