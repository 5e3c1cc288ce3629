/** What a session may do, so that pages offer nothing else. Pure; the platform decides. */
import type { Scope, Session } from "@hibernaut/client/browser";

/** Whether the session has one of these scopes. */
export function hasScope({ scopes }: Pick<Session, "scopes">, ...needed: readonly Scope[]): boolean {
  return scopes.includes("admin") || needed.some((one) => one === "read" || scopes.includes(one));
}

/** Whether the session is for all apps, and so for what concerns the platform as a whole. */
export function isUnlimited({ apps }: Pick<Session, "apps">): boolean {
  return apps === null;
}

/** Says which scope the session lacks; undefined if it lacks none. */
export function lackOf(session: Pick<Session, "scopes">, ...needed: readonly Scope[]): string | undefined {
  if (hasScope(session, ...needed)) return undefined;
  return `This needs a token with the scope ${needed.join(" or ")}.`;
}
