/** A machine whose memory, writable layer and volume hold things that nothing else knows, and whether they still do. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HibernautClient, Machine } from "@hibernaut/client";
import { ask, counterOf, wakeOf } from "./proxied.ts";
import { SMALL_APP } from "./small-app/image.ts";

const MACHINES_DOCUMENT = join(import.meta.dirname, "../../../../docs/machines.md");
/** Only a fault reaches it: a cold start takes 3 s, and on a host whose cores others use twenty times that. */
const STATE_TIMEOUT_S = 240;

/** A platform, of whichever version: where the API and apps answer now. */
export interface Running {
  readonly client: HibernautClient;
  readonly proxyUrl: string;
}

/** What a request found. */
export interface Found {
  /** What the proxy says about it: `running`, `warm`, `resume` or `cold`. */
  wake: string;
  /** `kept`, or the documented reason of the cold start that lost it. */
  memory: string;
  layer: "kept" | "lost";
  volume: "kept" | "lost";
}

/** What is found of a machine that has lost nothing. */
export const ALL_KEPT = { memory: "kept", layer: "kept", volume: "kept" } as const;

/** What must still be there. The nonce and the count are in the memory alone. */
interface Memo {
  nonce: string;
  count: number;
  notes: string[];
}

/** The only machine of an app, with a volume. It is reached as its users reach it: through the proxy. */
export class Life {
  readonly app: string;
  readonly id: string;
  #memo: Memo;

  private constructor(app: string, id: string, memo: Memo) {
    this.app = app;
    this.id = id;
    this.#memo = memo;
  }

  /** Creates the app and its machine, which cold starts, and leaves a note in its layer and its volume. */
  static async begin(on: Running, app: string): Promise<Life> {
    await on.client.createApp(app);
    const config = {
      image: SMALL_APP,
      guest: { memory_mb: 160 },
      mounts: [{ volume: "data", path: "/data" }],
      services: [{ internal_port: 8080 }],
    };
    const { id } = await on.client.createMachine(app, { config });
    await on.client.waitForMachine(app, id, { timeout: STATE_TIMEOUT_S });
    const { nonce, count } = counterOf(await ask({ proxyUrl: on.proxyUrl, app }));
    const life = new Life(app, id, { nonce, count, notes: [] });
    await life.#write(on);
    return life;
  }

  machine(on: Running): Promise<Machine> {
    return on.client.getMachine(this.app, this.id);
  }

  async suspend(on: Running): Promise<void> {
    await on.client.suspendMachine(this.app, this.id);
    await this.reach(on, "suspended");
  }

  async reach(on: Running, state: "running" | "suspended"): Promise<void> {
    await on.client.waitForMachine(this.app, this.id, { state: [state], timeout: STATE_TIMEOUT_S });
  }

  /** Asks the app, which wakes the machine, and says what it still has. Then leaves another note. */
  async look(on: Running): Promise<Found> {
    const answer = await ask({ proxyUrl: on.proxyUrl, app: this.app });
    if (answer.status !== 200) throw new Error(`${this.app} answers ${answer.status}: ${answer.text}`);
    const { nonce, count } = counterOf(answer);
    const known = nonce === this.#memo.nonce && count === this.#memo.count + 1;
    const memory = known ? "kept" : await this.#whyLost(on);
    const [layer, volume] = [await this.#compare(on, "/layer"), await this.#compare(on, "/notes")];
    this.#memo = { nonce, count, notes: this.#memo.notes };
    await this.#write(on);
    return { wake: wakeOf(answer).kind, memory, layer, volume };
  }

  async #write({ proxyUrl }: Running): Promise<void> {
    const note = `note ${this.#memo.notes.length + 1}`;
    for (const path of ["/layer", "/sure"]) {
      const { status } = await ask({ proxyUrl, app: this.app }, path, { method: "POST", body: note });
      if (status !== 200) throw new Error(`${path} of ${this.app} answers ${status}`);
    }
    this.#memo.notes.push(note);
  }

  async #compare({ proxyUrl }: Running, path: string): Promise<"kept" | "lost"> {
    const { text } = await ask({ proxyUrl, app: this.app }, path);
    return text === this.#memo.notes.map((note) => `${note}\n`).join("") ? "kept" : "lost";
  }

  /** The word that explains a cold start, if users can look it up. */
  async #whyLost(on: Running): Promise<string> {
    const { last_boot: boot } = await this.machine(on);
    const word = documentedReason(boot?.reason ?? "");
    return boot?.kind === "cold" && word !== undefined ? word : `not explained by ${JSON.stringify(boot)}`;
  }
}

/** The stable word of a reason, if docs/machines.md explains it in its table of reasons. */
export function documentedReason(reason: string): string | undefined {
  const [, after = ""] = readFileSync(MACHINES_DOCUMENT, "utf8").split("\n## Reasons for the last start\n");
  const [table = ""] = after.split("\n## ", 1);
  const [word = ""] = reason.split(":", 1);
  return table.includes(`\n| \`${word}\` | `) ? word : undefined;
}
