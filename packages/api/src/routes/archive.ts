/** `.../machines/{machine_id}/archive`: copies files into and out of a machine as tar archives. */
import { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { replies, streams } from "../schemas.ts";
import { PathQuery, PathReply, UnpackQuery, UnpackReply } from "./archive.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

/** The content type of a tar archive. */
const TAR = "application/x-tar";
/**
 * After how many milliseconds without traffic the kernel asks whether the client is still there. No time limit ends a
 * copy: while the machine is suspended, nothing moves for as long as its sleep lasts.
 */
const ASK_CLIENT_MS = 30_000;

/** Registers the routes that copy files. */
export function archiveRoutes(app: Api, { fileCopies }: Pick<ApiDeps, "fileCopies">): void {
  const schema = { tags: ["machines"], params: MachineParams };
  const path = "/v1/apps/:app_name/machines/:machine_id/archive";

  app.get(
    `${path}/stat`,
    {
      config: { scope: "exec" },
      schema: {
        ...schema,
        summary: "Show what is at a path in a machine",
        querystring: PathQuery,
        response: replies(200, PathReply),
      },
    },
    async ({ params, query }) => {
      const found = await fileCopies.stat(params.app_name, params.machine_id, query.path);
      const { kind, leadsTo, sizeBytes, mode } = found;
      return { kind, leads_to: leadsTo, size_bytes: sizeBytes, mode, path: found.path };
    },
  );

  app.get(
    path,
    {
      config: { scope: "exec" },
      schema: {
        ...schema,
        summary: "Copy a file or directory out of a machine",
        description:
          "The reply breaks off if the copy fails after its beginning: an archive that has its end is whole.",
        querystring: PathQuery,
        response: streams(200, TAR, "a tar archive whose entries begin with the last part of the path"),
      },
    },
    async ({ params, query }, reply) => {
      const gone = clientGone(reply);
      const archive = await fileCopies.read(params.app_name, params.machine_id, query.path, gone);
      return reply.type(TAR).send(Readable.from(archive, { objectMode: false }));
    },
  );

  app.addContentTypeParser(TAR, (_request, payload, done) => done(null, payload));
  app.put(
    path,
    {
      config: { scope: "exec", streamsBody: true },
      schema: {
        ...schema,
        summary: "Copy files into a machine",
        description:
          "Unpacks the body, a tar archive, in the directory `path`, which must exist. Each file appears whole or not at all.",
        consumes: [TAR],
        querystring: UnpackQuery,
        response: replies(200, UnpackReply),
      },
    },
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
