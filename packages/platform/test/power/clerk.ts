/** Stores things while the power may fail: apps, secrets, volumes, hostnames, releases, tokens, and machines on paper. */
import { setTimeout as delay } from "node:timers/promises";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { outcomeOf } from "./journal.ts";
import type { Site } from "./runner.ts";

/** Enough to have something of each kind. More would make each check longer. */
const MOST_APPS = 2;
const PAUSE_MS = 300;
const KINDS = ["secret", "secret", "volume", "hostname", "release", "token", "machine", "machine", "close"] as const;

/** One at a time, so that for each name at most one request is open when the power fails. */
export class Clerk {
  #number = 0;
  /** Apps that exist as far as the clerk knows. */
  readonly #apps: string[] = [];
  /** What is in each app, by key. */
  readonly #keys = new Map<string, Set<string>>();

  /** Works until the signal, or until the power fails. */
  async work(site: Site, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#step(site);
      await delay(site.random.between(0, PAUSE_MS), undefined, { signal }).catch(() => {});
    }
  }

  async #step(site: Site): Promise<void> {
    const app = this.#apps[0];
    if (app === undefined || this.#apps.length < MOST_APPS) return this.#open(site);
    const { random } = site;
    const kind = random.pick(KINDS);
    if (kind === "close" && random.between(1, 3) > 1) return;
    const chosen = random.pick([app, ...this.#apps]);
    if (kind === "close") await this.#close(site, app);
    else await this.#store(site, chosen, kind);
  }

  async #open({ client, journal }: Site): Promise<void> {
    const app = `office-${this.#next()}`;
    this.#keys.set(app, new Set());
    this.#apps.push(app);
    await journal.write(`app ${app}`, "there", () => client.createApp(app));
  }

  /** The app goes with everything in it, one thing after another. */
  async #close({ client, journal }: Site, app: string): Promise<void> {
    this.#apps.splice(this.#apps.indexOf(app), 1);
    let done: Promise<void> | undefined;
    const request = () => (done ??= client.destroyApp(app, { force: true }));
    for (const key of [...(this.#keys.get(app) ?? []), `app ${app}`]) await journal.write(key, null, request);
  }

  async #store({ client, journal, random }: Site, app: string, kind: string): Promise<void> {
    const number = this.#next();
    const write = (key: string, value: string | null, request: () => Promise<unknown>) => {
      if (!key.startsWith("token")) this.#keys.get(app)?.add(key);
      return journal.write(key, value, request);
    };
    if (kind === "secret") {
      const name = `SECRET_${number}`;
      await write(`secret ${app}/${name}`, "there", () => client.setSecrets(app, { [name]: String(number) }));
      if (random.between(1, 3) === 1) await write(`secret ${app}/${name}`, null, () => client.unsetSecret(app, name));
    }
    if (kind === "volume") {
      const name = `volume_${number}`;
      await write(`volume ${app}/${name}`, "1 GB", () => client.createVolume(app, { name, size_gb: 1 }));
      if (random.between(1, 2) === 1)
        await write(`volume ${app}/${name}`, "2 GB", () => client.extendVolume(app, name, 2));
    }
    if (kind === "hostname") {
      const name = `host-${number}.example.com`;
      await write(`hostname ${app}/${name}`, "there", () => client.addHostname(app, name));
    }
    if (kind === "release") {
      const key = `release ${app}/${number}`;
      let version = 0;
      const begin = async () => {
        ({ version } = await client.createRelease(app, { image: SMALL_APP, description: String(number) }));
      };
      await write(key, "pending", begin);
      const complete = { status: "complete", description: String(number) } as const;
      if (version > 0) await write(key, "complete", () => client.updateRelease(app, version, complete));
    }
    if (kind === "token") await write(`token ${number}`, "there", () => client.createToken(`token-${number}`));
    if (kind === "machine") {
      const name = `paper-${number}`;
      const config = (revision: string) => ({ image: SMALL_APP, env: { REVISION: revision } });
      const create = () => client.createMachine(app, { name, config: config("1"), skip_launch: true });
      await write(`machine ${app}/${name}`, "1", create);
      const next = random.pick(["rest", "update", "destroy"]);
      if (next === "update") {
        await write(`machine ${app}/${name}`, "2", () => client.updateMachine(app, name, config("2")));
        // Refused where the cut before has left no such machine.
        await outcomeOf(() => client.waitForMachine(app, name, { state: "settled" }));
      }
      if (next === "destroy") await write(`machine ${app}/${name}`, null, () => client.destroyMachine(app, name));
    }
  }

  #next(): number {
    this.#number += 1;
    return this.#number;
  }
}
