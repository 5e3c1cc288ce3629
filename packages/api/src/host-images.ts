/** Images that are files of the host, or in its Docker: not for tokens that are limited to apps. */
import { HibernautError } from "@hibernaut/domain/errors";
import { ON_HOST } from "@hibernaut/domain/image-reference";
import { reachesApp } from "@hibernaut/domain/scopes";
import type { Machines } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import { configIn } from "./body-config.ts";

/**
 * Returns a hook that refuses such a reference in the body of a limited token's request: it would read files with the
 * rights of the platform. What one of its machines runs already stays usable, so that their configurations can change.
 */
export function refuseHostImages(machines: Pick<Machines, "all">) {
  return async ({ token, body }: FastifyRequest): Promise<void> => {
    if (token === null || token.apps === null) return;
    const ref = referenceIn(body);
    if (ref === undefined || !ON_HOST.test(ref)) return;
    if (machines.all().some(({ record }) => reachesApp(token, record.app) && record.config.image === ref)) return;
    const message = `A token that is limited to apps cannot use the image ${ref.slice(0, 200)}, which is on the platform's host. Upload it: \`hibernaut images upload\`, or \`hibernaut deploy --upload\`.`;
    throw new HibernautError("permission_denied", message, { image: ref.slice(0, 200), upload: true });
  };
}

/** The reference that a pull, a release, or the configuration of a machine names. */
function referenceIn(body: unknown): string | undefined {
  const { ref, image } = (body ?? {}) as { ref?: unknown; image?: unknown };
  return [ref, image, configIn(body)?.image].find((each) => typeof each === "string");
}
