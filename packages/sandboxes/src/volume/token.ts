/** The token with which a client reaches the files of one volume. It is derived, as those of sandboxes are. */
import type { SandboxTokens } from "../life/tokens.ts";

interface OneVolume {
  app: string;
  id: string;
}

/** Returns `<app>.` and 64 hex digits. */
export function volumeToken(tokens: SandboxTokens, { app, id }: OneVolume): string {
  return `${app}.${tokens.of(`${app}/${id}`, "volume")}`;
}

/** The app of a token that opens the volume. Undefined for any other. */
export function appOfToken(tokens: SandboxTokens, token: string | undefined, id: string): string | undefined {
  // Names of apps have no dots.
  const [app = "", signature] = (token ?? "").split(".", 2);
  return tokens.opens(`${app}/${id}`, "volume", signature) ? app : undefined;
}
