/**
 * An app that sends a request on: it answers with `hibernaut-replay` or `fly-replay`, and the proxy gives the same request
 * to the machine that the field names. Pure, except for the counters of one request.
 */
import type { Lease, ProxyRefusal, ReplayOrder } from "../contract.ts";
import type { Limits } from "./limits.ts";
import { proxyRefusal } from "./refusals.ts";

/** Sends one request on, as often as apps ask for it. Made for the first replay of a request. */
export class Replay {
  /** The value of the field that tells where to, until the request was sent on. */
  order: string | undefined;
  /** The value of `fly-replay-src` for the app that gets the request. */
  source: string | undefined;
  #hops = 0;
  #drained = 0;

  /** An app asks for the request to be sent on. */
  begin(order: string): void {
    this.order = order;
    this.#drained = 0;
  }

  /** Counts bytes of the answer, which are discarded. Returns whether they have become too many to wait for its end. */
  drain(bytes: number, { replayDrainBytes }: Pick<Limits, "replayDrainBytes">): boolean {
    this.#drained += bytes;
    return this.#drained > replayDrainBytes;
  }

  /** Returns what the app asks for. Refuses if it cannot be understood, or has been asked for too often. */
  take(from: Pick<Lease, "appName" | "machineId">, { replayHops }: Pick<Limits, "replayHops">): ReplayOrder {
    const text = this.order ?? "";
    this.order = undefined;
    this.#hops += 1;
    if (this.#hops > replayHops) throw loopRefusal(from.appName, replayHops);
    const order = parseReplay(text);
    if (typeof order !== "string") return order;
    const message = `App ${from.appName} sent this request on, but ${order} Use instance=<machine>, app=<name> and state=<text>, with semicolons between them.`;
    throw proxyRefusal("replay_invalid", message);
  }
}

/** The keys of the field, and what they stand for. */
const KEYS: ReadonlyMap<string, keyof ReplayOrder> = new Map([
  ["instance", "machine"],
  ["app", "app"],
  ["state", "state"],
]);
/** A message shows this much of a key. */
const SHOWN = 40;

/**
 * Returns what `instance=web;app=shop;state=text` asks for, or what is wrong with it, as the rest of a sentence. Parts may
 * have spaces around them, keys any case. A state may contain anything except a semicolon.
 */
export function parseReplay(text: string): ReplayOrder | string {
  const order: { -readonly [K in keyof ReplayOrder]: string | undefined } = {
    app: undefined,
    machine: undefined,
    state: undefined,
  };
  for (const part of text.split(";")) {
    if (part.trim() === "") continue;
    const at = part.indexOf("=");
    const name = (at === -1 ? part : part.slice(0, at)).trim().toLowerCase();
    const key = KEYS.get(name);
    if (key === undefined || at === -1) return `\`${name.slice(0, SHOWN)}\` is not supported there.`;
    if (order[key] !== undefined) return `it names \`${name}\` twice.`;
    order[key] = part.slice(at + 1).trim();
  }
  if (order.machine === "" || order.app === "") return "a name there is empty.";
  if (order.machine === undefined && order.app === undefined) return "it does not say where to.";
  return order.app === undefined ? order : { ...order, app: order.app.toLowerCase() };
}

/** Returns the value of `fly-replay-src`. `nowMs` is in milliseconds since 1970, and told in microseconds. */
export function replaySource(
  from: Pick<Lease, "appName" | "machineId">,
  state: string | undefined,
  nowMs: number,
): string {
  const source = `instance=${from.machineId};app=${from.appName};t=${Math.round(nowMs * 1000)}`;
  return state === undefined ? source : `${source};state=${state}`;
}

/** The request has a body of which not everything was kept. */
export function bodyRefusal(app: string, bytes: number, limits: Pick<Limits, "replayBodyBytes">): ProxyRefusal {
  const most = limits.replayBodyBytes;
  if (bytes <= most) {
    const message = `App ${app} sent this request on, but the proxy keeps too many bodies at the moment. Try again.`;
    return proxyRefusal("overloaded", message, { retryAfterS: 1 });
  }
  const message = `App ${app} sent this request on, but its body is over ${most} bytes. Send large bodies to the machine's own hostname.`;
  return proxyRefusal("replay_body_too_large", message);
}

function loopRefusal(app: string, hops: number): ProxyRefusal {
  const message = `Apps sent this request on ${hops} times, and app ${app} did so once more. Check that they do not send it to each other; fly-replay-src says where a request comes from.`;
  return proxyRefusal("replay_loop", message);
}
