/** The sandboxes that tools may use: those of one app, and no other machine of it. */
import { ApiError, type Machine, type MachineHandle } from "@hibernaut/client";
import type { Place } from "./contract.ts";

const GONE: ReadonlySet<Machine["state"]> = new Set(["destroying", "destroyed"]);

/** Every method rejects with an `ApiError`, whose message says what to do. */
export class SandboxesOf {
  readonly place: Place;
  #app: Promise<string> | undefined;

  constructor(place: Place) {
    this.place = place;
  }

  /** The app whose machines they are. */
  async app(): Promise<string> {
    this.#app ??= this.#find().catch((error: unknown) => {
      this.#app = undefined; // There may be one the next time.
      throw error;
    });
    return this.#app;
  }

  /** Returns a sandbox by its id or name. Other machines are not found: tools must not end what serves people. */
  async get(word: string, signal: AbortSignal): Promise<{ machine: Machine; handle: MachineHandle }> {
    const app = await this.app();
    const machine = await this.place.client.getMachine(app, word, { signal });
    if (machine.sandbox === null) {
      const message = `Machine ${machine.id} is not a sandbox, so tools leave it alone. See list_sandboxes, or make one with create_sandbox.`;
      throw new ApiError({ code: "failed_precondition", message });
    }
    if (GONE.has(machine.state)) {
      const message = `Sandbox ${machine.id} has been destroyed. Make another one with create_sandbox.`;
      throw new ApiError({ code: "not_found", message });
    }
    return { machine, handle: this.place.client.machine(app, machine.id) };
  }

  async #find(): Promise<string> {
    if (this.place.app !== undefined) return this.place.app;
    const apps = await this.place.client.listApps();
    const [only, ...others] = apps;
    if (only !== undefined && others.length === 0) return only.name;
    const message =
      only === undefined
        ? "There is no app. Make one with `hibernaut apps create agents`, and a template with `hibernaut sandbox template base --app agents`."
        : "The token reaches several apps, so that it is not clear whose sandboxes are meant. Use a token for one app, or start the server with --app.";
    throw new ApiError({ code: "failed_precondition", message });
  }
}
