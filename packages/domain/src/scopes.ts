/** What tokens may do: scopes, and what each includes. */

/** All scopes, the narrowest first. */
export const SCOPES = ["read", "exec", "deploy", "admin"] as const;

export type Scope = (typeof SCOPES)[number];

/** Reading is part of everything: neither a command nor a deploy works for someone who cannot see the machines. */
const INCLUDED: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ["read"],
  exec: ["read", "exec"],
  deploy: ["read", "deploy"],
  admin: SCOPES,
};

/** The rights of a token. */
export interface Grant {
  scopes: readonly Scope[];
  /** The only apps that it reaches; null for all, and for the platform itself. */
  apps: readonly string[] | null;
  /**
   * The apps whose previews it may make, and reaches: `apps` are those that there are now. Absent for a token that is not
   * limited to previews.
   */
  previewsOf?: readonly string[];
}

/** What a route needs: a scope, or any one of several. */
export type NeededScope = Scope | readonly Scope[];

/** Whether one of the scopes includes what is needed. */
export function hasScope(scopes: readonly Scope[], needed: NeededScope): boolean {
  return [needed].flat().some((one) => scopes.some((scope) => INCLUDED[scope].includes(one)));
}

/** Whether the app is one of those that the grant reaches. */
export function reachesApp({ apps }: Pick<Grant, "apps">, app: string): boolean {
  return apps === null || apps.includes(app);
}

/** The apps that a token was made for: those that it reaches, or those whose previews it reaches. */
export function namedApps({ apps, previewsOf }: Grant): readonly string[] {
  return previewsOf ?? apps ?? [];
}

/** Whether it may do everything, everywhere. */
export function isFullAccess({ scopes, apps }: Grant): boolean {
  return apps === null && scopes.includes("admin");
}
