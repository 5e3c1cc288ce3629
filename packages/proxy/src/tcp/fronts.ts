/** The ports at which the proxy takes TCP connections. They open and close as machines with such services come and go. */
import { randomInt } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { BACKLOG, type ConnectionBudget, type Seat } from "@hibernaut/connections";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Limits } from "../http/limits.ts";
import { plainAddress } from "../http/trust.ts";
import { type ArrivalOptions, arrive, arrivedAt, originOf } from "./arrival.ts";
import { type CarryOptions, carry, entryOf } from "./carry.ts";
import { numberOf, type PortApps } from "./ports.ts";
import { HIGH_WATER_BYTES } from "./splice.ts";

export interface TcpFrontsOptions extends Pick<CarryOptions, "leases" | "onAccess">, Omit<ArrivalOptions, "limits"> {
  limits: Limits;
  /** How many connections there may be, at these ports and others. */
  connections: ConnectionBudget;
  /** Whether the client is a machine of another app, which has no business at this app's ports. */
  isStranger(address: string, app: string): boolean;
  /** Whether several processes may share the ports. */
  reusePort: boolean;
  log: { warn(fields: object, message: string): void };
  /** Is told when other ports than before cannot be opened. */
  onClosed?(): void;
  /** Is told when a port is open. */
  onOpened?(): void;
}

/** To listen on a port that nobody else has. */
export const ANY_PORT = 0;
/**
 * Such ports are chosen here, and not by the system: those that it chooses from are the first that other programs get, and
 * rules that lead to one outlive a process that is killed.
 */
const ANY_PORTS = { from: 16_384, to: 32_768 };
/** A port that is taken is followed by another choice, this often. */
const MOST_CHOICES = 50;

/** Where connections are taken. */
export interface Place {
  host: string;
  /** What to listen on, or {@link ANY_PORT}. */
  listen: number;
  /** What is taken there: a port of the proxy, or of an app's own address, as `TcpPort` has it. */
  port: number;
  /** The apps that have it. */
  apps: PortApps;
}

/** Returns the places of the proxy's own ports: each at each of the hosts. */
export function placesOf(owners: ReadonlyMap<number, PortApps>, hosts: readonly string[]): Map<string, Place> {
  const places = [...owners].flatMap(([port, apps]) => hosts.map((host) => ({ host, listen: port, port, apps })));
  return new Map(places.map((place) => [`${place.host} ${place.port}`, place]));
}

/** A port that another program has may become free: it is tried again after this many milliseconds. */
const RETRY_MS = 5_000;
/**
 * It is tried this often: 3 minutes. A program that frees its port for longer, as for an upgrade, is not meant to lose it. Then it
 * is only tried when the claim on it is new.
 */
const MOST_RETRIES = 36;
/** A connection on which nothing moved for this long can be cut off when the proxy ends: nobody is in the middle of it. */
const QUIET_MS = 500;
const LOOK_MS = 50;
/** A connection that was cut off is gone within this time. */
const CUT_MS = 1_000;

interface Carried {
  /** The connection itself, below its TLS. */
  client: Socket;
  /** The machine that it comes from, if that may sleep. */
  from: string | undefined;
  machineId: string | undefined;
  /** The other host that has the machine, if one has. */
  host: string | undefined;
  /** Breaks the connection off. */
  cut(): void;
}

export class TcpFronts {
  readonly #options: TcpFrontsOptions;
  /** By the keys of the places, as the three after it. */
  readonly #servers = new Map<string, Server>();
  readonly #retries = new Map<string, NodeJS.Timeout>();
  /** Places that could not be opened: why, how often they were tried, and for which port. */
  readonly #troubles = new Map<string, { reason: string; tries: number; port: number }>();
  #places: ReadonlyMap<string, Place> = new Map();
  readonly #carried = new Set<Carried>();
  #closed = false;

  constructor(options: TcpFrontsOptions) {
    this.#options = options;
  }

  /**
   * Opens what is new, and closes what is not among the places any more.
   *
   * @param isNew whether the claim on a port is new, so that one that was given up is tried again
   */
  update(places: ReadonlyMap<string, Place>, isNew = (_port: number) => true): void {
    if (this.#closed) return;
    this.#places = places;
    for (const [key, { port }] of places) {
      if (this.#servers.has(key)) continue;
      const trouble = this.#troubles.get(key);
      if (trouble !== undefined && !isNew(port)) continue;
      if (trouble !== undefined) trouble.tries = 0;
      clearTimeout(this.#retries.get(key));
      this.#retries.delete(key);
      this.#open(key);
    }
    const known = [this.#servers, this.#retries, this.#troubles].flatMap((all) => [...all.keys()]);
    for (const key of new Set(known)) if (!places.has(key)) this.#shut(key);
  }

  /** The ports that cannot be opened at one of the hosts, each with the reason. */
  get closed(): Map<number, string> {
    return new Map([...this.#troubles.values()].map(({ port, reason }) => [port, reason]));
  }

  /** The ports that are open, each once for every host. */
  get ports(): number[] {
    return [...this.opened.keys()].flatMap((key) => this.#places.get(key)?.port ?? []);
  }

  /** On which port each place listens that is open, by its key. */
  get opened(): Map<string, number> {
    const all = [...this.#servers].map(([key, server]) => [key, server.address()] as const);
    return new Map(all.flatMap(([key, at]) => (at !== null && typeof at === "object" ? [[key, at.port]] : [])));
  }

  /** Breaks the connections to and from a machine whose guest has ended: nobody is left who would close them. */
  forget(machineId: string, ended: boolean): void {
    if (!ended) return;
    for (const one of this.#carried) {
      if (one.from === machineId) one.client.resetAndDestroy();
      else if (one.machineId === machineId) one.cut();
    }
  }

  /** Breaks the connections to machines of another host, which is away and may never say so. */
  forgetHost(host: string): void {
    for (const one of this.#carried) if (one.host === host) one.cut();
  }

  /** Takes no more connections, and cuts the others off as soon as they are quiet, or after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const key of [...this.#servers.keys(), ...this.#retries.keys()]) this.#shut(key);
    const end = performance.now() + graceMs;
    const moved = new Map<Carried, { bytes: number; at: number }>();
    while (this.#carried.size > 0) {
      const now = performance.now();
      if (now > end + CUT_MS) return;
      for (const one of this.#carried) {
        const bytes = one.client.bytesRead + one.client.bytesWritten;
        const before = moved.get(one);
        if (before === undefined || before.bytes !== bytes) moved.set(one, { bytes, at: now });
        else if (now - before.at >= QUIET_MS) one.client.destroy();
        if (now > end) one.client.destroy();
      }
      await delay(LOOK_MS);
    }
  }

  #open(key: string, choices = 1): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    const { reusePort, log, onClosed, onOpened } = this.#options;
    const { host, listen, port } = place;
    const options = { allowHalfOpen: true, noDelay: true, highWaterMark: HIGH_WATER_BYTES };
    const server = createServer(options, (socket) => this.#accept(key, socket));
    this.#servers.set(key, server);
    server.on("error", (error) => {
      if (server.listening) return log.warn({ port, reason: messageOf(error) }, "a TCP port has a problem");
      this.#servers.delete(key);
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (isTaken && listen === ANY_PORT && choices < MOST_CHOICES) return this.#open(key, choices + 1);
      this.#tryAgain(key, place, messageOf(error));
    });
    const number = listen === ANY_PORT ? randomInt(ANY_PORTS.from, ANY_PORTS.to) : listen;
    server.listen({ host, port: number, reusePort, backlog: BACKLOG }, () => {
      if (this.#troubles.delete(key)) onClosed?.();
      onOpened?.();
    });
  }

  #tryAgain(key: string, { host, port, apps }: Place, reason: string): void {
    const { log, onClosed } = this.#options;
    const number = numberOf(port);
    const trouble = this.#troubles.get(key) ?? { reason, tries: 0, port };
    const isNews = this.#troubles.get(key)?.reason !== reason;
    if (!this.#troubles.has(key))
      log.warn(
        { port: number, host, apps: [...apps.keys()], reason },
        `the TCP port ${number} cannot be opened; it is tried again for 3 minutes, and after that when a machine with it is created or updated. Does another program listen there?`,
      );
    this.#troubles.set(key, { reason, tries: trouble.tries + 1, port });
    if (isNews) onClosed?.();
    if (trouble.tries >= MOST_RETRIES) return;
    const retry = () => {
      this.#retries.delete(key);
      this.#open(key);
    };
    this.#retries.set(key, setTimeout(retry, RETRY_MS).unref());
  }

  #shut(key: string): void {
    this.#servers.get(key)?.close();
    this.#servers.delete(key);
    clearTimeout(this.#retries.get(key));
    this.#retries.delete(key);
    this.#troubles.delete(key);
  }

  #accept(key: string, raw: Socket): void {
    raw.on("error", () => {}); // what is wrong with it shows in its close
    const place = this.#places.get(key);
    if (place === undefined) return void raw.resetAndDestroy();
    const { connections, balancers, leases } = this.#options;
    const address = plainAddress(raw.remoteAddress ?? "");
    const seat = connections.admit(raw, { many: balancers.has(address), app: leases.appOfAddress?.(address) });
    if (seat === undefined) return;
    const one: Carried = {
      ...{ client: raw, from: leases.machineAt?.(address), machineId: undefined, host: undefined },
      cut: () => void raw.resetAndDestroy(),
    };
    this.#carried.add(one);
    background(
      this.#serve(place, one, seat).finally(() => this.#carried.delete(one)),
      "carrying a TCP connection",
    );
  }

  async #serve({ port, apps }: Place, one: Carried, seat: Seat): Promise<void> {
    const { leases, limits, connections, onAccess, isStranger } = this.#options;
    const raw = one.client;
    const app = arrivedAt(raw, apps, this.#options);
    const arrival =
      app === undefined
        ? await arrive(raw, apps, this.#options)
        : { client: raw, app, origin: originOf(raw), serverName: "" };
    const cut = () => void raw.resetAndDestroy();
    if ("code" in arrival) {
      if (!arrival.looked) onAccess({ ...entryOf({ port, ...arrival }, undefined), error: arrival.code });
      return;
    }
    if (isStranger(plainAddress(raw.remoteAddress ?? ""), arrival.app)) return cut();
    const { address } = arrival.origin.source;
    if (address !== plainAddress(seat.address ?? "") && !seat.isOf(address)) return;
    // Until its first byte for the app, the connection is one of those that make room for others.
    const onClientData = () => seat.begin();
    const onMachine = (machineId: string, host: string | undefined) => {
      Object.assign(one, { machineId, host });
      return () => void Object.assign(one, { machineId: undefined, host: undefined });
    };
    const { machines } = connections;
    const maySleep = one.from !== undefined;
    const from = one.from === undefined ? undefined : leases.connectedFrom?.(one.from);
    if (from !== undefined) one.cut = () => from.breakOff(cut);
    try {
      await carry({
        ...arrival,
        port,
        maySleep,
        from,
        cut: one.cut,
        leases,
        machines,
        limits,
        onMachine,
        onClientData,
        onAccess,
      });
    } finally {
      from?.release();
    }
  }
}
