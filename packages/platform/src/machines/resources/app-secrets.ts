/** Secrets: encrypted environment variables of an app, whose values nobody can read back. */
import { HibernautError } from "../../domain/errors.ts";
import type { SecretSummary } from "../../secrets/contract.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";
import { changeSecrets, type SecretsEffect } from "../secrets.ts";

/** Sets, lists and unsets secrets of apps. */
export class AppSecrets {
  readonly #deps: Pick<MachineDependencies, "store" | "secrets">;
  readonly #controllers: ControllerSet;

  constructor(deps: Pick<MachineDependencies, "store" | "secrets">, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
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
    const affected = secrets.changed(app, values).length === 0 ? [] : this.#controllers.of(app);
    return changeSecrets(affected, () => secrets.set(app, values), options);
  }

  /** Throws `not_found` when the app has no such secret. With `dryRun`, only returns what would happen. */
  unset(app: string, name: string, options?: { dryRun?: boolean }): SecretsEffect {
    if (!this.list(app).some((secret) => secret.name === name))
      throw new HibernautError("not_found", `App ${app} has no secret ${name}. See \`hibernaut secrets list\`.`, {
        app_name: app,
        secret: name,
      });
    return changeSecrets(this.#controllers.of(app), () => this.#deps.secrets.unset(app, name), options);
  }
}
