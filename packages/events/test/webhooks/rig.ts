/** Webhooks over a real store and a real stream of events, with a clock that a test moves. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openVault } from "@hibernaut/secrets/open";
import { openStore } from "@hibernaut/store/open";
import { onTestFinished } from "vitest";
import { EventStream } from "../../src/stream.ts";
import type { Clock } from "../../src/webhooks/clock.ts";
import { openWebhooks } from "../../src/webhooks/open.ts";
import type { Webhooks } from "../../src/webhooks/webhooks.ts";
import { openReceiver, type Receiver } from "./receiver.ts";

/** A clock on which whatever is waited for happens at once: its time jumps to when it was due. */
export class FastClock implements Clock {
  #now = Date.parse("2026-01-31T12:00:00Z");
  /** How long the waits were, in milliseconds. */
  readonly waits: number[] = [];

  now(): number {
    return this.#now;
  }

  later(ms: number, call: () => void): () => void {
    const due = this.#now + ms;
    const timer = setTimeout(() => {
      this.#now = Math.max(this.#now, due);
      this.waits.push(ms);
      call();
    }, 0);
    return () => clearTimeout(timer);
  }
}

/** A clock that a test moves. */
export class HeldClock implements Clock {
  #now = Date.parse("2026-01-31T12:00:00Z");
  readonly #calls = new Set<{ due: number; call: () => void }>();

  now(): number {
    return this.#now;
  }

  later(ms: number, call: () => void): () => void {
    const one = { due: this.#now + ms, call };
    this.#calls.add(one);
    return () => this.#calls.delete(one);
  }

  move(ms: number): void {
    this.#now += ms;
    for (const one of [...this.#calls]) {
      if (one.due > this.#now || !this.#calls.delete(one)) continue;
      one.call();
    }
  }
}

type Settings = Parameters<typeof openWebhooks>[0]["settings"];

interface RigOptions {
  clock?: Clock;
  settings?: Partial<Settings>;
  sending?: Parameters<typeof openWebhooks>[0]["sending"];
  maxWaiting?: number;
}

/** What a test needs. */
export interface Rig {
  store: ReturnType<typeof openStore>;
  stream: EventStream;
  webhooks: Webhooks;
  receiver: Receiver;
  logged: Record<string, unknown>[];
  folder: string;
  /** Adds an event of a machine. */
  happen(machine: string | null, more?: { type?: string; app?: string | null; data?: Record<string, unknown> }): void;
  /** Ends the deliveries and begins them again, as a restart of the platform does. */
  restart(): Promise<void>;
  /** Lines of the delivery log of the only webhook, oldest first. */
  log(): ReturnType<Webhooks["deliveries"]>;
}

/** Opens everything, and closes it when the test has finished. */
export async function openRig({ clock, settings, sending, maxWaiting }: RigOptions = {}): Promise<Rig> {
  // In memory where possible: these tests prove order, not that the kernel can flush.
  const folder = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "hibernaut-webhooks-"));
  const store = openStore(join(folder, "hibernaut.db"));
  const stream = new EventStream(store.outbox);
  const vault = openVault({ store: store.secrets, keyFile: join(folder, "secrets.key") });
  const logged: Record<string, unknown>[] = [];
  const note = (fields: Record<string, unknown>, message: string) => void logged.push({ ...fields, message });
  const receiver = await openReceiver();
  const open = () =>
    openWebhooks({
      settings: {
        blockedNetworks: [],
        webhookPrivateAddresses: "allow",
        webhookHttp: "allow",
        webhookTimeoutMs: 15_000,
        ...settings,
      },
      ...{ store, stream, vault, version: "1" },
      log: { info: note, warn: note, error: note },
      ...(clock && { clock }),
      ...(sending && { sending }),
      ...(maxWaiting !== undefined && { maxWaiting }),
    });
  const rig: Rig = {
    ...{ store, stream, receiver, logged, folder },
    webhooks: open(),
    happen(machine, { type = "machine.running", app = "shop", data = {} } = {}) {
      store.outbox.add({ type, at: new Date().toISOString(), app, machine, data });
    },
    async restart() {
      await rig.webhooks.close();
      rig.webhooks = open();
      rig.webhooks.start();
    },
    log: () => rig.webhooks.deliveries(rig.webhooks.list()[0]?.id ?? "", 1000).toReversed(),
  };
  store.apps.insert({ name: "shop", createdAt: "" });
  rig.webhooks.start();
  onTestFinished(async () => {
    await rig.webhooks.close();
    stream.close();
    store.close();
    await rm(folder, { recursive: true });
  });
  return rig;
}
