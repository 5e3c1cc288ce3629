/** The HTTP/2 connections to all machines whose apps speak it. Each carries many requests at once. */
import type { Socket } from "node:net";
import type { ConnectionKey } from "../contract.ts";
import { MachineLeft } from "./app-request.ts";
import { AppSession, NotHttp2 } from "./app-session.ts";
import type { AppStream } from "./app-stream.ts";
import type { Limits } from "./limits.ts";
import { notHttp2, tooManyConnections } from "./refusals.ts";

interface MachineSessions {
  readonly all: Set<AppSession>;
  /** Connections that are being made, by port: requests wait for them instead of making one each. */
  readonly coming: Map<number, Promise<unknown>>;
  /** Aborted, and replaced, when the machine is forgotten. */
  leaving: AbortController;
}

export class SessionPool {
  readonly #limits: Limits;
  readonly #machines = new Map<string, MachineSessions>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Returns a place on a connection that is open, if there is one. */
  take({ machineId, address, port }: ConnectionKey): AppStream | undefined {
    for (const session of this.#machines.get(machineId)?.all ?? [])
      if (session.port === port && session.address === address && session.hasRoom) return session.take();
    return undefined;
  }

  /** Returns a place on a new connection, made with `open`, or on one that was made in the meantime. */
  async add(
    lease: ConnectionKey,
    open: (left: AbortSignal) => Promise<Socket>,
    signal: AbortSignal,
  ): Promise<AppStream> {
    for (;;) {
      signal.throwIfAborted();
      const machine = this.#machine(lease.machineId);
      const coming = machine.coming.get(lease.port);
      if (coming === undefined) return this.#make(machine, lease, open, signal);
      // If it fails, each request that waited finds out for itself: the first one may just have been cancelled.
      await coming.catch(() => {});
      const known = this.take(lease);
      if (known !== undefined) return known;
    }
  }

  async #make(
    machine: MachineSessions,
    lease: ConnectionKey,
    open: (left: AbortSignal) => Promise<Socket>,
    signal: AbortSignal,
  ): Promise<AppStream> {
    const { machineId, port } = lease;
    if (machine.all.size >= this.#limits.machineConnections) throw tooManyConnections();
    const { leaving } = machine;
    const made = (async () => {
      const socket = await open(leaving.signal);
      const either = AbortSignal.any([signal, leaving.signal]);
      const session = await AppSession.open(socket, lease, this.#limits, either, (gone) => {
        machine.all.delete(gone);
        this.#tidy(machineId, machine);
      });
      machine.all.add(session);
      const stream = session.take();
      // It is not kept for the next request if the machine was forgotten in the meantime.
      if (leaving.signal.aborted) session.retire();
      return stream;
    })();
    machine.coming.set(port, made);
    try {
      return await made;
    } catch (error) {
      throw error instanceof NotHttp2 ? notHttp2(lease, error) : error;
    } finally {
      machine.coming.delete(port);
      this.#tidy(machineId, machine);
    }
  }

  /** As for {@link ConnectionPool.forget}. */
  forget(machineId: string, ended: boolean): void {
    const machine = this.#machines.get(machineId);
    if (machine === undefined) return;
    machine.leaving.abort(new MachineLeft("The machine has left."));
    machine.leaving = new AbortController();
    for (const session of [...machine.all])
      if (ended) session.abandon(new MachineLeft("The machine has ended."));
      else session.retire();
  }

  /** Closes connections that were idle for too long. */
  sweep(now: number): void {
    for (const { all } of this.#machines.values())
      for (const session of [...all]) {
        if (!session.idle) continue;
        session.idleSince ??= now;
        if (now - session.idleSince >= this.#limits.machineIdleMs) session.retire();
      }
  }

  /** Closes all idle connections. */
  close(): void {
    for (const machineId of this.#machines.keys()) this.forget(machineId, false);
  }

  count(): { open: number; idle: number } {
    let [open, idle] = [0, 0];
    for (const { all, coming } of this.#machines.values()) {
      open += all.size + coming.size;
      for (const session of all) if (session.idle) idle += 1;
    }
    return { open, idle };
  }

  #machine(machineId: string): MachineSessions {
    const known = this.#machines.get(machineId);
    if (known !== undefined) return known;
    const machine: MachineSessions = { all: new Set(), coming: new Map(), leaving: new AbortController() };
    this.#machines.set(machineId, machine);
    return machine;
  }

  #tidy(machineId: string, machine: MachineSessions): void {
    if (machine.all.size === 0 && machine.coming.size === 0) this.#machines.delete(machineId);
  }
}
