/** What other packages may use. */
export type { ClusterAdmin, ClusterStatus } from "./admin.ts";
export { type OpenAgreedOptions, openAgreed } from "./agreed/open.ts";
export type { PreviewEnds, SharedRecords, Write } from "./agreed/shared.ts";
export { isBeingDeleted } from "./app-deletion.ts";
export type { Cluster, ClusterHost, Owned, View } from "./cluster.ts";
export type { Change, Condition } from "./contract.ts";
export { type Home, isInCluster, readHome } from "./home.ts";
export type { ClusterHosts } from "./owning.ts";
export { hostSilent, PeerClient } from "./peer-client.ts";
export { splitAddress, tlsTo } from "./peers.ts";
export { type Candidate, place, type Wanted } from "./place.ts";
export type { ClusterTemplates } from "./templates/open.ts";
