/** Sandboxes as users of the platform's own API make, pause and fork them: the same ones, with the same life. */
import { HibernautError } from "@hibernaut/domain/errors";
import { DEFAULT_SANDBOX_TIMEOUT_S } from "@hibernaut/domain/limits";
import type { Sandbox, SandboxEnd } from "@hibernaut/domain/sandbox";
import type { MachineView } from "@hibernaut/machines";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import { type ChosenBirth, endAfter, heirOf } from "./chosen.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { asSandbox } from "./view.ts";

/** What users of the API choose. Whatever else there is to choose, E2B's clients choose. */
interface ApiSandbox {
  /** Seconds. Default: 300. */
  timeout_s?: number | undefined;
  /** Default: `kill`. */
  on_timeout?: SandboxEnd | undefined;
  /** Whether a request to a paused one wakes it. Default: false. */
  auto_resume?: boolean | undefined;
  metadata?: Record<string, string> | undefined;
  /** Volumes that are there, by names or ids. */
  mounts?: readonly { volume: string; path: string }[] | undefined;
}

/** Every method throws `HibernautError`, and `not_found` for a machine that the app does not have. */
export class SandboxesOfApi {
  /** The URL of a port of a sandbox, with `{port}` and `{id}` in it. */
  readonly portUrl: string;
  readonly #sandboxes: Sandboxes;
  readonly #machines: SandboxNeeds["resources"]["machines"];

  constructor(sandboxes: Sandboxes, { machines }: SandboxNeeds["resources"], portUrl: string) {
    this.portUrl = portUrl;
    this.#sandboxes = sandboxes;
    this.#machines = machines;
  }

  /** Makes a sandbox from a template of the app, and resolves once it is stored. */
  async begin(
    app: string,
    template: string,
    { timeout_s, on_timeout, auto_resume, metadata = {}, mounts = [] }: ApiSandbox,
    birth: ChosenBirth,
    signal: AbortSignal,
  ): Promise<MachineView> {
    const chosen = {
      ...{ template, metadata, env: {}, keepMemory: true, secure: true },
      timeoutS: timeout_s ?? DEFAULT_SANDBOX_TIMEOUT_S,
      onTimeout: on_timeout ?? "kill",
      autoResume: auto_resume ?? false,
      volumes: mounts.map(({ volume: name, path }) => ({ name, path })),
    };
    try {
      return await this.#sandboxes.begin(app, chosen, birth, signal);
    } catch (error) {
      throw inWordsOfApi(error);
    }
  }

  /** What the forks of a sandbox are: each has the time that its parent was last given. Undefined for other machines. */
  heirOf(app: string, word: string): Sandbox | undefined {
    const { sandbox } = this.#machines.get(app, word).record;
    return sandbox && heirOf(sandbox, sandbox.timeout_s, Date.now());
  }

  /** Has the times of new forks kept. */
  forked(): void {
    this.#sandboxes.look();
  }

  /** Notes that its owner paused it, so that it is kept. Does nothing for other machines. */
  paused(app: string, word: string): void {
    const view = asSandbox(this.#machines.get(app, word));
    if (view !== undefined) this.#sandboxes.change(view, { paused: true });
  }

  /** Gives a paused sandbox its time again, because its owner starts it. Does nothing for other machines. */
  resumed(app: string, word: string): void {
    const view = asSandbox(this.#machines.get(app, word));
    if (view?.record.sandbox.paused !== true) return;
    this.#sandboxes.change(view, { ends_at: endAfter(view.record.sandbox.timeout_s, Date.now()), paused: false });
  }
}

/** A refusal in the codes of the platform's API. */
function inWordsOfApi(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error;
  const code = error.status === 404 ? "not_found" : error.status === 409 ? "failed_precondition" : "invalid_argument";
  return new HibernautError(code, error.message, {}, { cause: error });
}
