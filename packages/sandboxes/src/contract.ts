/** What sandboxes need of the platform. */
import type { Grant } from "@hibernaut/domain/scopes";
import type { Resources } from "@hibernaut/machines";
import type { Vault } from "@hibernaut/secrets";
import type { BuildStore } from "@hibernaut/store";
import type { VolumeService } from "@hibernaut/volumes";

/** What a key may do: it belongs to one app, whose machines its sandboxes are. */
interface KeyHolder {
  app: string;
  grant: Grant;
}

export interface SandboxNeeds {
  resources: Pick<Resources, "apps" | "machines" | "commands" | "forwards" | "templates" | "forks" | "logs">;
  volumes: Pick<VolumeService, "list" | "create" | "destroy" | "listSnapshots">;
  /** Builds of templates, and the names that lead to what they made. */
  builds: BuildStore;
  /** The directory for what clients upload for builds. It is made when it is needed. */
  uploadFolder: string;
  /** Whose key it is. Undefined for any other string, and for a token that may not make machines. */
  holderOf(key: string): KeyHolder | undefined;
  /** Encrypts what clients have added to requests. */
  vault: Pick<Vault, "seal">;
  /** The certificate of the authority that the gate of machines' connections has, PEM. */
  egressAuthority(): Promise<string>;
  /** A secret of this platform, 32 bytes, from which the tokens of its sandboxes are derived. */
  secret: Buffer;
  /** The domain below which `<port>-<sandbox>` are names, with the port at which clients reach it, unless that is 443. */
  domain: string;
  log: { info(details: object, message: string): void; warn(details: object, message: string): void };
}
