/** Which host of a cluster answers a request, for every route of the API that needs a token. */

/**
 * - `here`: the host that was asked. It concerns that host, or its client.
 * - `shared`: the host that was asked, because all hosts know the same.
 * - `machine`: the host that owns the machine of the path.
 * - `volume`: the host that has the volume of the path.
 * - `release`: the host that the client of the release reports to.
 * - `host`: the host of the path.
 * - `placed`: a host that is chosen for what is created.
 * - `all`: every host, and the answers are put together.
 * - `emptied`: the host that was asked, after every host has removed what it has.
 */
export type Where = "here" | "host" | "shared" | "machine" | "volume" | "release" | "placed" | "all" | "emptied";

const A = "/v1/apps/:app_name";
const M = `${A}/machines/:machine_id`;
const V = `${A}/volumes/:volume_id`;
const W = "/v1/webhooks/:webhook_id";

/** By method and pattern. */
export const ROUTES: Readonly<Record<string, Where>> = {
  "GET /v1/apps": "shared",
  "POST /v1/apps": "shared",
  [`GET ${A}`]: "shared",
  [`PATCH ${A}`]: "shared",
  [`DELETE ${A}`]: "emptied",
  [`GET ${A}/hostnames`]: "shared",
  [`POST ${A}/hostnames`]: "shared",
  [`DELETE ${A}/hostnames/:hostname`]: "shared",
  [`GET ${A}/secrets`]: "shared",
  [`POST ${A}/secrets`]: "shared",
  [`DELETE ${A}/secrets/:secret_name`]: "shared",
  [`GET ${A}/releases`]: "shared",
  [`POST ${A}/releases`]: "shared",
  [`POST ${A}/releases/:version`]: "release",
  [`POST ${A}/releases/:version/command`]: "release",
  "GET /v1/tokens": "shared",
  "POST /v1/tokens": "shared",
  "POST /v1/tokens/:token_id/rotate": "shared",
  "DELETE /v1/tokens/:token_id": "shared",
  [`PUT ${A}/quota`]: "shared",
  [`GET ${A}/quota`]: "all",

  "GET /v1/machines": "all",
  [`GET ${A}/machines`]: "all",
  [`POST ${A}/machines`]: "placed",
  [`GET ${M}`]: "machine",
  [`POST ${M}`]: "machine",
  [`DELETE ${M}`]: "machine",
  [`GET ${M}/events`]: "machine",
  [`POST ${M}/start`]: "machine",
  [`POST ${M}/stop`]: "machine",
  [`POST ${M}/suspend`]: "machine",
  [`POST ${M}/restart`]: "machine",
  [`POST ${M}/cordon`]: "machine",
  [`POST ${M}/uncordon`]: "machine",
  [`POST ${M}/move`]: "machine",
  [`GET ${M}/activity`]: "machine",
  [`GET ${M}/wait`]: "machine",
  [`GET ${M}/logs`]: "machine",
  [`GET ${M}/usage`]: "machine",
  [`POST ${M}/exec`]: "machine",
  [`GET ${M}/exec`]: "machine",
  [`GET ${M}/archive`]: "machine",
  [`PUT ${M}/archive`]: "machine",
  [`GET ${M}/archive/stat`]: "machine",
  [`GET ${M}/forward`]: "machine",
  [`GET ${A}/logs`]: "all",

  [`GET ${A}/volumes`]: "all",
  [`POST ${A}/volumes`]: "placed",
  [`GET ${V}`]: "volume",
  [`PUT ${V}`]: "volume",
  [`DELETE ${V}`]: "volume",
  [`PUT ${V}/extend`]: "volume",
  [`GET ${V}/snapshots`]: "volume",
  [`POST ${V}/snapshots`]: "volume",
  [`DELETE ${V}/snapshots/:snapshot_id`]: "volume",

  "GET /v1/stream": "all",
  "GET /v1/timeline": "all",
  "GET /v1/wakes": "all",
  "GET /v1/usage": "all",
  "GET /v1/audit": "all",

  [`GET ${A}/certificates`]: "here",
  [`POST ${A}/certificates`]: "here",
  [`GET ${A}/certificates/:hostname`]: "here",
  [`DELETE ${A}/certificates/:hostname`]: "here",
  [`GET ${A}/certificates/:hostname/check`]: "here",
  "GET /v1/images": "here",
  "DELETE /v1/images": "here",
  "POST /v1/images/pull": "here",
  "GET /v1/images/uploads": "here",
  "POST /v1/images/uploads": "here",
  "DELETE /v1/images/uploads/:digest": "here",
  "PATCH /v1/images/blobs/:digest": "here",
  "GET /v1/registries": "here",
  "GET /v1/registries/:host": "here",
  "PUT /v1/registries/:host": "here",
  "DELETE /v1/registries/:host": "here",
  "GET /v1/webhooks": "here",
  "POST /v1/webhooks": "here",
  [`GET ${W}`]: "here",
  [`PATCH ${W}`]: "here",
  [`DELETE ${W}`]: "here",
  [`POST ${W}/test`]: "here",
  [`POST ${W}/rotate`]: "here",
  [`GET ${W}/deliveries`]: "here",
  "POST /v1/session": "here",
  "GET /v1/session": "here",
  "DELETE /v1/session": "here",
  "GET /v1/platform/regions": "here",
  "GET /v1/platform/host": "here",
  "GET /v1/platform/doctor": "here",
  "GET /v1/platform/drain": "here",
  "POST /v1/platform/drain": "here",
  "DELETE /v1/platform/drain": "here",
  "GET /v1/platform/backup": "here",
  "POST /v1/platform/backup": "here",
  "GET /v1/cluster": "here",
  "POST /v1/cluster/tokens": "here",
  "DELETE /v1/cluster/disputed/:machine_id": "here",
  "DELETE /v1/cluster/hosts/:host": "here",
  "POST /v1/cluster/hosts/:host/drain": "host",
  "DELETE /v1/cluster/hosts/:host/drain": "host",
  "POST /v1/cluster/hosts/:host/evacuate": "here",
  "GET /metrics": "here",

  "PUT /v1/keepalive": "here",
  "DELETE /v1/keepalive": "here",
  "PUT /v1/wake": "here",
  "DELETE /v1/wake": "here",
  "POST /v1/prepared": "here",
  "GET /v1/events": "here",
  "POST /v1/events/:event_id/ready": "here",
};
