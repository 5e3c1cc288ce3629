/** The check that every route says who may use it. */
import type { Api } from "./deps.ts";

/** Makes the registration of a route fail that does not say who may use it. */
export function requireScopes(app: Api): void {
  app.addHook("onRoute", ({ method, url, config }) => {
    const said = [config?.inside === "only", config?.open === true, config?.scope !== undefined];
    if (said.filter(Boolean).length !== 1)
      throw new Error(
        `${String(method)} ${url}: say in \`config\` which \`scope\` it needs, or \`inside: "only"\`, or \`open\`.`,
      );
  });
}
