/** What the API is given. */

import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import type { Registry } from "prom-client";
import type { HypervisorIdentity } from "../hypervisor/contract.ts";
import type { ImageLibrary, RegistryLogins } from "../images/contract.ts";
import type { MachineService } from "../machines/service.ts";
import type { TokenStore } from "../store/contract.ts";
import type { VolumeService } from "../volumes/contract.ts";
import type { LocalConnections } from "./auth.ts";

/** What the platform is, for `GET /v1/health`; settled before the API listens. */
export interface PlatformInfo {
  /** Version of Hibernaut. */
  version: string;
  region: string;
  hypervisor: HypervisorIdentity;
  /** Why this accelerator, e.g. the fault that ruled out KVM. */
  acceleratorReason: string;
  /** Version of the current guest bundle. */
  guestBundle: string;
  /** How machines are connected, and why so. */
  network: { mode: string; reason: string };
}

/** The parts of the platform that stand behind the API. */
export interface ApiDeps {
  machines: MachineService;
  images: ImageLibrary;
  volumes: VolumeService;
  registries: RegistryLogins;
  tokens: TokenStore;
  platform: PlatformInfo;
  /** Where apps answer. Absent, or empty, where that is not known. */
  proxy?: {
    url(): string | undefined;
    urlsOf(app: string): string[];
  };
  /** Throws when the platform cannot do its work; the store's `check`. */
  check(): void;
  logger: FastifyBaseLogger;
  /** Connections that came out of machines; none when absent. */
  local?: LocalConnections;
  /** Where other parts of the platform keep their metrics; a new one when absent. */
  registry?: Registry;
}

/** The Fastify instance of the API: its handlers are typed by their schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;
