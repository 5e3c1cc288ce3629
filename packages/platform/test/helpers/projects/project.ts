/** A project on a platform of tests, from its compose file to its machines, as its user runs it. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Machine } from "@hibernaut/client";
import { expect } from "vitest";
import { type Run, runCli } from "../../../../cli/test/real-cli.ts";
import type { Answer } from "../http.ts";
import { ask } from "../proxied.ts";
import type { Place } from "../served.ts";
import { waitS } from "../slow.ts";

/** Under emulation, the first start of a database takes its time, and so does Node's. In seconds. */
const UP_S = "240";

export class Project {
  readonly name: string;
  readonly #place: Place;

  constructor(place: Place, name: string) {
    this.#place = place;
    this.name = name;
  }

  /** Where its files are: a directory that is called like the project. */
  get folder(): string {
    return join(this.#place.dataDir, this.name);
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(this.folder, name), text);
  }

  /** Runs `hibernaut` in its directory. */
  run(...args: string[]): Promise<Run> {
    return runCli(this.#place, args, { cwd: this.folder, more: { HIBERNAUT_APP: "" } });
  }

  /** The same, for a command that has to work. */
  async done(...args: string[]): Promise<Run> {
    const run = await this.run(...args);
    expect(run.code, run.err).toBe(0);
    return run;
  }

  up(...args: string[]): Promise<Run> {
    return this.run("compose", "up", "--wait-timeout", UP_S, ...args);
  }

  app(service: string): string {
    return `${this.name}-${service}`;
  }

  /** A request from outside. */
  ask(service: string, path?: string, sent?: Parameters<typeof ask>[2]): Promise<Answer> {
    return ask({ proxyUrl: this.#place.proxyUrl, app: this.app(service) }, path, sent);
  }

  async machine(service: string): Promise<Machine> {
    const [machine] = await this.#place.client.listMachines(this.app(service));
    if (machine === undefined) throw new Error(`${service} has no machine`);
    return machine;
  }

  async events(service: string) {
    return this.#place.client.listMachineEvents(this.app(service), (await this.machine(service)).id, { limit: 1000 });
  }

  /** Waits until all of them sleep. */
  async asleep(...services: string[]): Promise<void> {
    for (const service of services) {
      const { id } = await this.machine(service);
      await this.#place.client.waitForMachine(this.app(service), id, { state: "suspended", timeout: waitS(60) });
    }
  }

  async destroy(): Promise<void> {
    for (const { name } of await this.#place.client.listApps())
      if (name.startsWith(`${this.name}-`)) await this.#place.client.destroyApp(name, { force: true });
  }
}
