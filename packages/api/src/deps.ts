/** What the API needs from the rest of the platform. */
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { AppRestores, BackupService, BackupTargetService } from "@hibernaut/backup";
import type { CertificateService } from "@hibernaut/certs";
import type {
  ClusterAdmin,
  ClusterHosts,
  ClusterTemplates,
  PeerClient,
  SharedRecords,
  View,
  Write,
} from "@hibernaut/cluster";
import type { RequestPlaces } from "@hibernaut/connections";
import type { Activity } from "@hibernaut/domain/awake";
import type { EventStream, Webhooks } from "@hibernaut/events";
import type { HypervisorIdentity } from "@hibernaut/hypervisor";
import type { ImageLibrary, ImageStore, ImageUploads, RegistryLogins } from "@hibernaut/images";
import type { Quotas, Resources, TxtRecords } from "@hibernaut/machines";
import type { Usage } from "@hibernaut/metering";
import type { SessionStore, TokenStore } from "@hibernaut/store";
import type { VolumeService } from "@hibernaut/volumes";
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from "fastify";
import type { Registry } from "prom-client";
import type { AuditLog } from "./audit/log.ts";
import type { LocalConnections } from "./auth.ts";
import type { PeerConnections } from "./cluster/peer.ts";
import type { Finding } from "./findings.ts";
import type { ApiSandboxes } from "./sandboxes.ts";

/** What the platform is, for `GET /v1/health`. Known before the API listens. */
interface PlatformInfo {
  /** Version of Hibernaut. */
  version: string;
  region: string;
  hypervisor: HypervisorIdentity;
  /** Why this accelerator was chosen, e.g. the error that ruled out KVM. */
  acceleratorReason: string;
  /** Version of the current guest bundle. */
  guestBundle: string;
  /** The network mode, and why it was chosen. */
  network: { mode: string; reason: string };
}

/** Requests per minute and token, by what they do; 0 for no limit. */
export interface Rates {
  reads: number;
  changes: number;
  execs: number;
}

/** The files of the API's certificate. */
export interface ApiTls {
  /** PEM, with the chain. */
  cert: string;
  key: string;
  /** PEM. Clients need a certificate of one of these authorities, in addition to a token. Default: they need none. */
  clientCa?: string | undefined;
}

/** What makes this platform one host of several. */
export interface ApiCluster {
  shared: SharedRecords;
  view: View;
  /** Asks other hosts. */
  client: PeerClient;
  /** The templates of all hosts. */
  templates: ClusterTemplates;
  /** The images of this host, which other hosts get from it. */
  images: Pick<ImageStore, "get" | "ensure">;
  /** Connections from other hosts, which the peer port hands to the API. */
  connections: PeerConnections;
}

/** The parts of the platform behind the API. Each route takes only those it needs. */
export interface ApiDeps
  extends Omit<
    Resources,
    | "machineCopies"
    | "recover"
    | "startTimer"
    | "close"
    | "unfitSnapshots"
    | "dropSnapshots"
    | "warm"
    | "workload"
    | "births"
  > {
  images: ImageLibrary;
  uploads: ImageUploads;
  /** How many uploads tokens that are limited to an app may have open at once; 0 for any number, which is the default. */
  uploadsPerApp?: number;
  volumes: VolumeService;
  backups: BackupService;
  backupTargets: BackupTargetService;
  appRestores: Pick<AppRestores, "restore" | "drill">;
  certificates: CertificateService;
  registries: RegistryLogins;
  usage: Usage;
  quotas: Quotas;
  /** Which requests are carried out at once. */
  places: Pick<RequestPlaces, "take">;
  /** Serves over TLS. By default, without. */
  tls?: ApiTls | undefined;
  /** The origins whose pages may use the API from a browser. By default, none. */
  corsOrigins?: readonly string[];
  /** Where changes are noted. By default, nowhere. */
  audit?: AuditLog | undefined;
  /** Requests per minute and token. By default, any number. */
  rates?: Rates;
  /** Looks up the TXT records of a name. By default, as the host does. */
  txtRecords?: TxtRecords;
  tokens: TokenStore;
  sessions: SessionStore;
  /** The directory of the built dashboard. By default, there is none. */
  dashboard?: string | undefined;
  stream: EventStream;
  webhooks: Webhooks;
  platform: PlatformInfo;
  /** The addresses at which apps answer. Absent, or empty, when they are not known. */
  proxy?: {
    url(): string | undefined;
    urlsOf(app: string): string[];
  };
  /** Checks the host, one thing after the other. */
  doctor(): AsyncIterable<Finding>;
  /** Why a machine does not sleep. Undefined unless it is running, and while the platform starts. */
  activity?(id: string): Activity | undefined;
  /** The ports for TCP connections of an app that the proxies cannot open, each with the reason. */
  closedPorts?(app: string): { port: number; reason: string }[];
  /** Machines that end when their time is over. Undefined while they are off, and while the platform starts. */
  sandboxes?(): ApiSandboxes | undefined;
  /** How long previews are kept, in seconds, unless their clients say otherwise. */
  previewTtlS: number;
  /** The TCP ports that tokens which are limited to apps may take, such as `1024-65535`. By default, all. */
  tcpPorts?: string;
  /** Throws when the platform cannot work: the store's `check`. */
  check(): void;
  logger: FastifyBaseLogger;
  /** What can be done with other hosts. Absent on a host alone. */
  hosts?: ClusterHosts | undefined;
  /** The cluster that this host belongs to. Absent on a host alone. */
  cluster?: ApiCluster | undefined;
  /** What administrators do with that cluster. Absent on a host alone. */
  clusterAdmin?: ClusterAdmin | undefined;
  /** Connections from inside machines; none when absent. */
  local?: LocalConnections;
  /** The registry that other parts of the platform keep their metrics in; a new one when absent. */
  registry?: Registry;
}

/** How a route changes what all hosts of a cluster share. */
export interface Writes {
  write: Write;
}

/** The Fastify instance of the API: its handlers are typed by their schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;
