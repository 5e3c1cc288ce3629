/** `/volumecontent`: files of a volume, wherever it is mounted. The token of the volume is the key. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Static } from "typebox";
import { Refusal } from "../failure.ts";
import type { GuestTask } from "../inside/guest.ts";
import { VolumeContent } from "../volume/content.ts";
import { openVolume } from "../volume/open-volume.ts";
import { appOfToken } from "../volume/token.ts";
import { type ControlDeps, goneSignal } from "./deps.ts";
import { ListQuery, MakeQuery, MetadataBody, PathQuery, VolumeParams } from "./volume-schemas.ts";

interface Asked<Query> {
  Params: Static<typeof VolumeParams>;
  Querystring: Query;
}
type AtPath = Asked<Static<typeof PathQuery>>;
type Made = Asked<Static<typeof MakeQuery>>;

const ROOT = "/volumecontent/:volumeID";
const params = VolumeParams;

/** Adds the routes in a scope of their own, in which bodies that are not JSON are streams. */
export function volumeContentRoutes(app: FastifyInstance, deps: ControlDeps): void {
  const { volumes, tokens } = deps;
  app.addContentTypeParser("application/octet-stream", (_request, body, done) => done(null, body));
  app.addContentTypeParser("*", (_request, body, done) => done(null, body));

  // Before anything of the body is read.
  app.addHook("onRequest", async (request) => {
    const { authorization = "" } = request.headers;
    const token = authorization.startsWith("Bearer ") ? authorization.slice(7) : undefined;
    const owner = appOfToken(tokens, token, volumeOf(request));
    if (owner === undefined) throw new Refusal(401, "The token of this volume is missing or wrong.");
    request.sandboxApp = owner;
  });

  const contentOf = async (request: FastifyRequest, reply: FastifyReply): Promise<VolumeContent> => {
    const signal = goneSignal(reply);
    const volume = volumes.get(request.sandboxApp, volumeOf(request));
    const open = await openVolume(volume, deps, signal);
    reply.raw.once("close", () => open[Symbol.dispose]());
    if (reply.raw.destroyed) open[Symbol.dispose]();
    return new VolumeContent(open.guest, open.root, signal);
  };

  app.get<AtPath>(`${ROOT}/path`, { schema: { params, querystring: PathQuery } }, async (request, reply) =>
    (await contentOf(request, reply)).stat(request.query.path),
  );
  app.patch<AtPath & { Body: Static<typeof MetadataBody> }>(
    `${ROOT}/path`,
    { schema: { params, querystring: PathQuery, body: MetadataBody } },
    async (request, reply) => (await contentOf(request, reply)).change(request.query.path, request.body),
  );
  app.delete<AtPath>(`${ROOT}/path`, { schema: { params, querystring: PathQuery } }, async (request, reply) => {
    await (await contentOf(request, reply)).remove(request.query.path);
    return reply.code(204).send();
  });
  app.get<Asked<Static<typeof ListQuery>>>(
    `${ROOT}/dir`,
    { schema: { params, querystring: ListQuery } },
    async (request, reply) => (await contentOf(request, reply)).list(request.query.path, request.query.depth),
  );
  app.post<Made>(`${ROOT}/dir`, { schema: { params, querystring: MakeQuery } }, async (request, reply) => {
    const { path, force, ...metadata } = request.query;
    const made = await (await contentOf(request, reply)).makeDirectory(path, force, metadata);
    return reply.code(201).send(made);
  });
  app.get<AtPath>(`${ROOT}/file`, { schema: { params, querystring: PathQuery } }, async (request, reply) => {
    const content = await contentOf(request, reply);
    const body = await begun(await content.read(request.query.path));
    return reply.type("application/octet-stream").send(Readable.from(body));
  });
  app.put<Made>(`${ROOT}/file`, { schema: { params, querystring: MakeQuery } }, async (request, reply) => {
    const { path, force, ...metadata } = request.query;
    const content = await contentOf(request, reply);
    return reply.code(201).send(await content.write(path, sourceOf(request.body), force, metadata));
  });
}

function volumeOf(request: FastifyRequest): string {
  return (request.params as Partial<Static<typeof VolumeParams>>).volumeID ?? "";
}

/** What a client sent: a stream, and without a body or with one of JSON, what that said. */
function sourceOf(body: unknown): Readable {
  if (body instanceof Readable) return body;
  if (body === undefined || body === null) return Readable.from([]);
  throw new Refusal(400, "The contents of a file are sent as `application/octet-stream`.");
}

/** Resolves once the first bytes are there, or the task has ended well. A file that is cut short breaks the response off. */
async function begun({ command, ended }: GuestTask): Promise<AsyncIterable<Buffer>> {
  const chunks = (command.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) await ended;
  return (async function* () {
    try {
      for (let next = first; next.done !== true; next = await chunks.next()) yield next.value;
      await ended;
    } finally {
      command.kill("nobody reads the file any more");
    }
  })();
}
