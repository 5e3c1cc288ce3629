/** Writers and readers of the orders service. What it has acknowledged, it must have from then on, and once. */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Clients, Reply } from "./clients.ts";

/** Between two requests, in milliseconds: sometimes long enough for a machine to fall asleep. */
const PAUSE_MS = [20, 4000] as const;
/** How many the service returns at a time. */
const PAGE = 100;
/** How long the service may take to answer again after the last fault, in milliseconds. */
const RECOVER_MS = 300_000;
const LOOK_MS = 500;

interface Row {
  id: number;
  name: string;
}

/** What one machine of orders was asked to keep. */
export class Orders {
  readonly app: string;
  /** Writes that were sent. */
  sent = 0;
  /** IDs of those that were acknowledged, by the name that nobody else gives. */
  readonly acknowledged = new Map<string, number>();
  /** Answers that cannot be: a write that is gone, or another one in its place. */
  readonly wrong: string[] = [];
  readonly #clients: Clients;
  #supplier = 0;

  constructor(app: string, clients: Clients) {
    this.app = app;
    this.#clients = clients;
  }

  /** Makes what products need. */
  async prepare(): Promise<void> {
    const end = performance.now() + RECOVER_MS;
    const supplier = { companyName: "Torture", country: "Norway" };
    let reply: Reply | undefined;
    while (reply === undefined && performance.now() < end)
      reply = await this.#clients.ask(this.app, "/suppliers", [supplier]);
    if (reply?.status !== 201)
      throw new Error(`${this.app} does not work: ${JSON.stringify({ reply, errors: this.#clients.errors })}`);
    this.#supplier = (reply.body as Row[])[0]?.id ?? 0;
  }

  async write(going: () => boolean): Promise<void> {
    while (going()) {
      this.sent += 1;
      const name = `torture ${this.app} ${this.sent}.`;
      const row = { name, supplierId: this.#supplier, unitPrice: "1", unitsInStock: this.sent };
      // Never sent twice: what was not acknowledged may be there, or not.
      const reply = await this.#clients.ask(this.app, "/products", [row]);
      if (reply?.status === 201) this.#acknowledge(name, (reply.body as Row[])[0]);
      else if (reply !== undefined) this.wrong.push(`${name}: ${JSON.stringify(reply)}`);
      await delay(randomInt(...PAUSE_MS));
    }
  }

  /** Looks up what was acknowledged before, again and again. */
  async read(going: () => boolean): Promise<void> {
    while (going()) {
      const known = [...this.acknowledged];
      const [name, id] = known[randomInt(Math.max(1, known.length))] ?? [];
      if (name !== undefined) {
        const reply = await this.#clients.ask(this.app, `/products/${id}`);
        const found = (reply?.body as { product?: Row } | undefined)?.product?.name;
        if (reply !== undefined && found !== name) this.wrong.push(`${name} (${id}): ${JSON.stringify(reply)}`);
      }
      await delay(randomInt(...PAUSE_MS));
    }
  }

  /** Returns what the service has in the end. Rejects when it does not answer again. */
  async all(): Promise<Row[]> {
    const end = performance.now() + RECOVER_MS;
    const rows: Row[] = [];
    for (let total = 1; rows.length < total; ) {
      const path = `/products?name=${encodeURIComponent(`torture ${this.app} `)}&limit=${PAGE}&offset=${rows.length}`;
      const reply = await this.#clients.ask(this.app, path);
      if (reply?.status === 200) {
        const page = reply.body as { items: Row[]; total: number };
        rows.push(...page.items);
        total = page.total;
      } else if (performance.now() > end) throw new Error(`${this.app} does not answer: ${JSON.stringify(reply)}`);
      else await delay(LOOK_MS);
    }
    return rows;
  }

  #acknowledge(name: string, row: Row | undefined): void {
    const id = row?.id ?? 0;
    const before = [...this.acknowledged].find(([, other]) => other === id);
    if (before !== undefined) this.wrong.push(`${name} and ${before[0]} have the same ID, ${id}`);
    this.acknowledged.set(name, id);
  }
}

/** Compares what was acknowledged with what is there. Returns what is gone, and what is there more than once. */
export function compare(
  acknowledged: ReadonlyMap<string, number>,
  found: readonly Row[],
): { lost: string[]; repeated: string[] } {
  const times = new Map<string, number>();
  for (const { name } of found) times.set(name, (times.get(name) ?? 0) + 1);
  const there = new Map(found.map(({ id, name }) => [id, name]));
  return {
    lost: [...acknowledged].filter(([name, id]) => there.get(id) !== name).map(([name]) => name),
    repeated: [...times].filter(([, count]) => count > 1).map(([name]) => name),
  };
}
