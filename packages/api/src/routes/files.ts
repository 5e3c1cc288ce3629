/** `.../machines/{machine_id}/files`: directories of a machine. Contents travel as archives: see `archive.ts`. */
import type { AgentEntry } from "@hibernaut/guest";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { bytes, closed, nullable, Ok, oneOf, time } from "../schemas.ts";
import { absolutePath } from "./archive.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

const KINDS = ["file", "directory", "link", "other"] as const;
/** Deeper lists are asked for one part at a time. */
const MOST_DEPTH = 32;
/** The latest time that JavaScript knows, in milliseconds since 1970. A guest may claim a later one. */
const LATEST_MS = 8.64e15;

const PathQuery = Type.Object({ path: absolutePath }, closed);

/** `?path=/srv&depth=2` */
const ListQuery = Type.Object(
  {
    path: absolutePath,
    depth: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MOST_DEPTH,
        description: "How many levels of directories to list. Default: 1.",
      }),
    ),
  },
  closed,
);

const FileEntry = Type.Object(
  {
    path: Type.String(),
    kind: oneOf(KINDS),
    size_bytes: bytes,
    mode: Type.Integer({ minimum: 0, maximum: 0o7777, description: "Permissions." }),
    owner: Type.String({ description: "A name, or a number without one." }),
    group: Type.String({ description: "A name, or a number without one." }),
    modified_at: time,
    target: nullable(Type.String(), "Where a link leads. Null for anything else."),
  },
  { ...closed, title: "FileEntry", description: "What is at a path in a machine, in a list." },
);

const FileList = Type.Object(
  {
    entries: Type.Array(FileEntry),
    truncated: Type.Boolean({ description: "Whether there are more: lists end after about 1 MiB." }),
  },
  { ...closed, title: "FileList", description: "What is below a directory of a machine." },
);

/** Registers the routes of directories. */
export function fileRoutes(app: Api, { fileTree }: Pick<ApiDeps, "fileTree">): void {
  const path = "/v1/apps/:app_name/machines/:machine_id/files";

  app.get(
    path,
    route(
      "List a directory of a machine",
      { scope: "exec" },
      { params: MachineParams, querystring: ListQuery, reply: FileList },
    ),
    async ({ params, query }, reply) => {
      const { app_name: appName, machine_id: id } = params;
      const { entries, cut } = await fileTree.list(appName, id, query.path, query.depth ?? 1, clientGone(reply));
      return { entries: entries.map(entryWire), truncated: cut };
    },
  );

  app.delete(
    path,
    route(
      "Remove a file of a machine, or a directory with all that is below",
      { scope: "exec" },
      { params: MachineParams, querystring: PathQuery, reply: Ok },
    ),
    async ({ params, query }, reply) => {
      await fileTree.remove(params.app_name, params.machine_id, query.path, clientGone(reply));
      return { ok: true as const };
    },
  );

  app.put(
    `${path}/directory`,
    route(
      "Make a directory in a machine, and those that lead to it",
      { scope: "exec" },
      { params: MachineParams, querystring: PathQuery, reply: FileEntry },
    ),
    async ({ params, query }, reply) =>
      entryWire(await fileTree.makeDirectory(params.app_name, params.machine_id, query.path, clientGone(reply))),
  );
}

/** What a guest says has to be what the schema promises. */
function entryWire({ kind, size, mode, owner, group, modifiedMs, path, target }: AgentEntry) {
  return {
    path,
    kind: KINDS.find((each) => each === kind) ?? ("other" as const),
    size_bytes: size,
    mode: Number.isNaN(mode) ? 0 : mode,
    ...{ owner, group },
    modified_at: new Date(Math.min(modifiedMs, LATEST_MS)).toISOString(),
    target: target === "" ? null : target,
  };
}
