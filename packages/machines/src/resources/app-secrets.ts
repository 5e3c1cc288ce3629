/** Secrets: encrypted environment variables of an app, whose values nobody can read back. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { SecretSummary } from "@hibernaut/secrets";
import type { Store } from "@hibernaut/store";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";
import { changeSecrets, type HasSecrets, type SecretsEffect } from "../secrets.ts";

interface AppSecretsDependencies extends Pick<MachineDependencies, "secrets"> {
  store: Pick<Store, "apps">;
}

/** Sets, lists and unsets secrets of apps. */
export class AppSecrets {
  readonly #deps: AppSecretsDependencies;
  readonly #controllers: { everyOf(app: string): HasSecrets[] };

  constructor(deps: AppSecretsDependencies, controllers: { everyOf(app: string): HasSecrets[] }) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /** Returns the same rules over other secrets. What they change has no effect on machines: {@link adopt} has. */
  over(deps: AppSecretsDependencies): AppSecrets {
    const everyOf = (app: string) => this.#controllers.everyOf(app).map(({ record }) => ({ record, command() {} }));
    return new AppSecrets(deps, { everyOf });
  }

  /** Carries out a change of an app's secrets that was decided elsewhere, and discards its machines' snapshots. */
  adopt(app: string, change: () => void): void {
    changeSecrets(this.#controllers.everyOf(app), change);
  }

  /** Returns an app's secrets by name, without their values. */
  list(app: string): SecretSummary[] {
    requireApp(this.#deps.store.apps, app);
    return this.#deps.secrets.list(app);
  }

  /**
   * Sets all of the values or none. Values that the secrets already have change nothing. With `dryRun`, only returns
   * what would happen.
   */
  set(app: string, values: Record<string, string>, options?: { dryRun?: boolean }): SecretsEffect {
    const { store, secrets } = this.#deps;
    requireApp(store.apps, app);
    const affected = secrets.changed(app, values).length === 0 ? [] : this.#controllers.everyOf(app);
    return changeSecrets(affected, () => secrets.set(app, values), options);
  }

  /** Gives an app all secrets of another one, with their values. Those that it has under other names stay. */
  copy(from: string, to: string): SecretsEffect {
    if (this.list(from).length === 0) return { discarded: [], pending: [] };
    return this.set(to, this.#deps.secrets.environment(from));
  }

  /** Throws `not_found` when the app has no such secret. With `dryRun`, only returns what would happen. */
  unset(app: string, name: string, options?: { dryRun?: boolean }): SecretsEffect {
    if (!this.list(app).some((secret) => secret.name === name))
      throw new HibernautError("not_found", `App ${app} has no secret ${name}. See \`hibernaut secrets list\`.`, {
        app_name: app,
        secret: name,
      });
    return changeSecrets(this.#controllers.everyOf(app), () => this.#deps.secrets.unset(app, name), options);
  }
}
