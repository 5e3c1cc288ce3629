/** The check that every route says who may use it. */
import type { Api } from "./deps.ts";

/** Makes the registration of a route fail that does not say who may use it. */
export function requireScopes(app: Api): void {
  app.addHook("onRoute", ({ method, url, config }) => {
    const only = config?.inside === "only";
    if (only === (config?.scope !== undefined))
      throw new Error(`${String(method)} ${url}: say in \`config\` which \`scope\` it needs, or \`inside: "only"\`.`);
  });
}
