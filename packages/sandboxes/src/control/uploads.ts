/** `PUT /uploads?link=...`: files for builds, by links that need no key. */
import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { UPLOAD_TIMEOUT_MS } from "../build/limits.ts";
import { isMissing, Refusal } from "../failure.ts";
import { type ControlDeps, goneSignal } from "./deps.ts";

/** Longer than any link: it has the name of an app, two times and two hashes. */
const Query = Type.Object({ link: Type.String({ maxLength: 1000 }) });

/** Adds the route in a scope of its own, in which bodies are streams. */
export function uploadRoutes(app: FastifyInstance, { needs, uploads, links }: ControlDeps): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, body, done) => done(null, body));
  app.put<{ Querystring: Static<typeof Query> }>(
    "/uploads",
    { schema: { querystring: Query } },
    async ({ query: { link }, raw }, reply) => {
      const upload = links.read(link);
      if (upload === undefined)
        throw new Refusal(403, "The link for this upload is wrong, or its time is over. Ask for another one.");
      requireApp(upload.app, needs);
      const signal = AbortSignal.any([goneSignal(reply), AbortSignal.timeout(UPLOAD_TIMEOUT_MS)]);
      await uploads.receive(upload.app, upload.hash, raw, signal);
      return reply.code(200).send();
    },
  );
}

/** Throws a {@link Refusal} when the app is gone, also if there is another one of its name. */
function requireApp(
  { name, createdAt }: { name: string; createdAt: string },
  { resources }: ControlDeps["needs"],
): void {
  try {
    if (resources.apps.get(name).createdAt === createdAt) return;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  throw new Refusal(403, "The app that this upload is for is gone.");
}
