/**
 * Who may do what at the port of sandboxes, written from the documentation and not from the code: the test compares the two.
 * In the order in which an owner can do it all, one after the other.
 */
import { enveloped } from "./port.ts";
import type { Tenant } from "./tenant.ts";

/**
 * `named`: the path or the body says whose thing is meant, and to others there is no such thing. `own`: everyone gets what is
 * theirs. `public`: no key is asked for. `link`: the link that an owner was given is the key. `volume`: the token of the volume is.
 */
export type Kind = "named" | "own" | "public" | "link" | "volume";

export interface Row {
  kind: Kind;
  /** The status of its owner's request. */
  status: number;
  body?(of: Tenant): unknown;
  query?(of: Tenant): string;
}

const named = (status: number, body?: Row["body"]): Row => ({ kind: "named", status, ...(body && { body }) });
const own = (status: number, body?: Row["body"]): Row => ({ kind: "own", status, ...(body && { body }) });
const files = (status: number, more: Partial<Row> = {}): Row => ({
  ...{ kind: "volume", status, query: () => "?path=/a" },
  ...more,
});
const V = "/volumecontent/:volumeID";
const S = "/sandboxes/:sandboxID";
const T = "/templates/:templateID";

/** The control API, by method and path. `HEAD` is what `GET` is. */
export const CONTROL: Readonly<Record<string, Row>> = {
  "GET /health": { kind: "public", status: 204 },
  "GET /sandboxes": own(200),
  "GET /v2/sandboxes": own(200),
  "POST /sandboxes": named(201, ({ template }) => ({ templateID: template })),
  "POST /v2/sandboxes": named(201, ({ templateId }) => ({ templateID: templateId })),
  [`GET ${S}`]: named(200),
  [`GET ${S}/metrics`]: named(200),
  [`GET ${S}/logs`]: named(200),
  [`GET /v2${S}/logs`]: named(200),
  "GET /sandboxes/metrics": {
    ...{ kind: "own", status: 200 },
    query: ({ running, paused }) => `?sandbox_ids=${running},${paused}`,
  },
  [`POST ${S}/timeout`]: named(204, () => ({ timeout: 3600 })),
  [`POST ${S}/refreshes`]: named(204, () => ({ duration: 60 })),
  [`PUT ${S}/network`]: named(204, () => ({})),
  [`POST ${S}/connect`]: named(200, () => ({ timeout: 60 })),
  [`POST /v2${S}/connect`]: named(200, () => ({ timeout: 60 })),
  [`POST ${S}/fork`]: named(201, () => ({ count: 1, timeout: 60 })),
  [`POST ${S}/snapshots`]: named(201, () => ({ name: "another" })),
  "GET /snapshots": { kind: "own", status: 200, query: ({ running }) => `?sandboxID=${running}` },
  [`POST ${S}/pause`]: named(204, () => ({})),
  [`POST ${S}/resume`]: named(201, () => ({ timeout: 60 })),
  [`DELETE ${S}`]: named(204),
  "GET /templates": own(200),
  "GET /v2/templates": own(200),
  "GET /templates/aliases/:templateID": named(200),
  "POST /templates/tags": named(201, ({ template }) => ({ target: template, tags: ["v2"] })),
  [`GET ${T}/tags`]: named(200),
  [`GET ${T}`]: named(200),
  [`PATCH ${T}`]: named(200, () => ({ public: false })),
  [`PATCH /v2${T}`]: named(200, () => ({})),
  "DELETE /templates/tags": named(204, ({ template }) => ({ name: template, tags: ["v2"] })),
  "POST /v3/templates": own(202, ({ built }) => ({ name: built })),
  "POST /v2/templates": own(202, ({ built }) => ({ name: built })),
  "GET /templates/:templateID/files/:hash": named(201),
  "GET /templates/:templateID/builds/:buildID/status": named(200),
  "GET /templates/:templateID/builds/:buildID/logs": named(200),
  "POST /v2/templates/:templateID/builds/:buildID": named(202, ({ template }) => ({ fromTemplate: template })),
  "PUT /uploads": { kind: "link", status: 200, query: ({ link }) => link, body: () => "files" },
  [`DELETE ${T}`]: named(204),
  "GET /volumes": own(200),
  "POST /volumes": own(201, () => ({ name: "another" })),
  "GET /volumes/:volumeID": named(200),
  "DELETE /volumes/:volumeID": named(204),
  [`GET ${V}/path`]: files(200),
  [`PATCH ${V}/path`]: files(200, { body: () => ({ uid: 1000, mode: 0o644 }) }),
  [`DELETE ${V}/path`]: files(204),
  [`GET ${V}/dir`]: files(200),
  [`POST ${V}/dir`]: files(201),
  [`GET ${V}/file`]: files(200),
  [`PUT ${V}/file`]: files(201, { body: () => "contents" }),
};

const at = (path: string) => () => ({ path });
const program = (of: Tenant) => ({ process: { tag: of.program } });
const input = { stdin: Buffer.from("x").toString("base64") };
const file = () => "?path=/home/user/a";

/** Files and programs, which open with the access token of their sandbox. */
export const INSIDE: Readonly<Record<string, Row>> = {
  "GET /health": { kind: "public", status: 204 },
  "GET /envs": named(200),
  "GET /metrics": named(200),
  "GET /files": { ...named(200), query: file },
  "HEAD /files": { ...named(200), query: file },
  "POST /files": { ...named(200, () => "text"), query: file },
  "POST /files/compose": named(200, () => ({ source_paths: ["/a", "/b"], destination: "/c" })),
  "POST /filesystem.Filesystem/Stat": named(200, at("/")),
  "POST /filesystem.Filesystem/MakeDir": named(200, at("/new")),
  "POST /filesystem.Filesystem/Move": named(200, () => ({ source: "/a", destination: "/b" })),
  "POST /filesystem.Filesystem/ListDir": named(200, at("/")),
  "POST /filesystem.Filesystem/Remove": named(200, at("/a")),
  "POST /filesystem.Filesystem/WatchDir": named(200, at("/")),
  "POST /filesystem.Filesystem/CreateWatcher": named(200, at("/")),
  "POST /filesystem.Filesystem/GetWatcherEvents": named(200, ({ watcher }) => ({ watcherId: watcher })),
  "POST /filesystem.Filesystem/RemoveWatcher": named(200, ({ watcher }) => ({ watcherId: watcher })),
  "POST /process.Process/List": named(200, () => ({})),
  "POST /process.Process/Start": named(200, () => ({ process: { cmd: "true" } })),
  "POST /process.Process/Connect": named(200, program),
  "POST /process.Process/Update": named(200, (of) => ({ ...program(of), pty: { size: { rows: 2, cols: 2 } } })),
  "POST /process.Process/SendInput": named(200, (of) => ({ ...program(of), input })),
  "POST /process.Process/StreamInput": named(200, (of) => [{ start: program(of) }, { data: { input } }]),
  "POST /process.Process/CloseStdin": named(200, program),
  "POST /process.Process/SendSignal": named(200, (of) => ({ ...program(of), signal: "SIGNAL_SIGKILL" })),
};

/** What a row sends, with the type that goes with it. */
export function bodyOf({ body }: Row, of: Tenant, kind = "unary"): { type?: string; body?: string | Buffer } {
  const value = body?.(of);
  if (value === undefined) return {};
  if (typeof value === "string") return { type: "application/octet-stream", body: value };
  if (kind === "unary") return { type: "application/json", body: JSON.stringify(value) };
  return { type: "application/connect+json", body: enveloped(...[value].flat()) };
}
