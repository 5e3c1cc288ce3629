/** `.../machines/{machine_id}/archive`: copies files into and out of a machine as tar archives. */
import { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { bytes, closed, oneOf, streamed } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

const KINDS = ["file", "directory", "link", "other"] as const;

/** A path in a machine. */
export const absolutePath = Type.String({
  pattern: "^/[^\\u0000]*$",
  maxLength: 4096,
  description: "An absolute path in the machine.",
});

/** `?path=/srv/data` */
const PathQuery = Type.Object({ path: absolutePath }, closed);

/** `?path=/srv&owner=archive` */
const UnpackQuery = Type.Object(
  {
    path: absolutePath,
    owner: Type.Optional({
      ...oneOf(["image", "archive"] as const),
      description: "Whom the files belong to: the image's user, or whom the archive says. Default: image.",
    }),
  },
  closed,
);

const PathReply = Type.Object(
  {
    kind: oneOf(KINDS),
    leads_to: Type.Union([oneOf(KINDS), Type.Null()], {
      description: "What is behind a link, else the same as `kind`. Null for a link that leads nowhere.",
    }),
    size_bytes: bytes,
    mode: Type.Integer({ minimum: 0, maximum: 0o7777, description: "Permissions." }),
    path: Type.String({ description: "The path without symbolic links." }),
  },
  { ...closed, title: "MachinePath", description: "What is at a path in a machine." },
);

const UnpackReply = Type.Object(
  {
    entries: Type.Integer({ minimum: 0, description: "Files, directories and links of the archive." }),
    bytes: { ...bytes, description: "Bytes of all files." },
  },
  { ...closed, title: "UnpackedArchive", description: "What was copied into a machine." },
);

const TAR = "application/x-tar";
/**
 * After how many milliseconds without traffic the kernel asks whether the client is still there. No time limit ends a
 * copy: while the machine is suspended, nothing moves for as long as its sleep lasts.
 */
const ASK_CLIENT_MS = 30_000;

/** Registers the routes that copy files. */
export function archiveRoutes(app: Api, { fileCopies }: Pick<ApiDeps, "fileCopies">): void {
  const path = "/v1/apps/:app_name/machines/:machine_id/archive";

  app.get(
    `${path}/stat`,
    route(
      "Show what is at a path in a machine",
      { scope: "exec" },
      { params: MachineParams, querystring: PathQuery, reply: PathReply },
    ),
    async ({ params, query }) => {
      const found = await fileCopies.stat(params.app_name, params.machine_id, query.path);
      const { kind, leadsTo, sizeBytes, mode } = found;
      return { kind, leads_to: leadsTo, size_bytes: sizeBytes, mode, path: found.path };
    },
  );

  app.get(
    path,
    route(
      "Copy a file or directory out of a machine",
      { scope: "exec" },
      {
        params: MachineParams,
        description:
          "The reply breaks off if the copy fails after its beginning: an archive that has its end is whole.",
        querystring: PathQuery,
        response: streamed(200, TAR, "a tar archive whose entries begin with the last part of the path"),
      },
    ),
    async ({ params, query }, reply) => {
      const gone = clientGone(reply);
      const archive = await fileCopies.read(params.app_name, params.machine_id, query.path, gone);
      return reply.type(TAR).send(Readable.from(archive, { objectMode: false }));
    },
  );

  app.addContentTypeParser(TAR, (_request, payload, done) => done(null, payload));
  app.put(
    path,
    route(
      "Copy files into a machine",
      { scope: "exec", streamsBody: true },
      {
        params: MachineParams,
        description:
          "Unpacks the body, a tar archive, in the directory `path`, which must exist. Each file appears whole or not at all.",
        consumes: [TAR],
        querystring: UnpackQuery,
        reply: UnpackReply,
      },
    ),
    async ({ params, query, body, raw }) => {
      if (!(body instanceof Readable))
        throw new HibernautError("unsupported_media_type", `The body must be a tar archive, sent as \`${TAR}\`.`);
      raw.socket.setKeepAlive(true, ASK_CLIENT_MS);
      const { path: directory, owner = "image" } = query;
      try {
        const request = { path: directory, owner, source: body };
        return await fileCopies.write(params.app_name, params.machine_id, request);
      } finally {
        body.resume(); // What is left of the body is dropped, so that the client reads why instead of a lost connection.
      }
    },
  );
}
