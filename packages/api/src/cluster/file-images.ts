/**
 * Images that are files of the host that a client talks to, or in its Docker, for machines of other hosts: they are imported
 * here, and named by their digest to the other host, which gets them from this one.
 */
import { KEYS } from "@hibernaut/cluster/keys";
import type { MachineConfig } from "@hibernaut/domain/config";
import { ON_HOST } from "@hibernaut/domain/image-reference";
import { findNamed } from "@hibernaut/domain/naming";
import { pinned } from "@hibernaut/domain/pinned";
import type { FastifyRequest } from "fastify";
import type { ApiCluster } from "../deps.ts";

/** The part of a body that names an image. */
interface WithConfig {
  config?: Pick<MachineConfig, "image">;
}

/** Whether an image is named by a file of the host or in its Docker. One with a digest is had from any host. */
export function isOnHost(image: unknown): image is string {
  return typeof image === "string" && ON_HOST.test(image) && !image.includes("@sha256:");
}

/** Whether the request may name files of the host. One that may not is refused by the route. */
export function mayNameFiles({ token }: Pick<FastifyRequest, "token">): boolean {
  return token?.apps === null;
}

/** Imports the image of a configuration, and returns the body with its digest. Rejects like {@link ImageStore.ensure}. */
export async function withDigest<T extends WithConfig>(body: T, images: ApiCluster["images"]): Promise<T> {
  const { config } = body;
  if (config === undefined) return body;
  const { digest } = await images.ensure(config.image);
  return { ...body, config: { ...config, image: pinned(config.image, digest) } };
}

/**
 * Returns the body of an update that is sent on, in which a new image has its digest. The image that the machine has may be
 * a file of its own host, and stays as it is.
 */
export async function updateToSend(
  request: FastifyRequest,
  body: Buffer,
  { view, images }: Pick<ApiCluster, "view" | "images">,
): Promise<Buffer> {
  if (!mayNameFiles(request)) return body;
  const update = parsed(body);
  const image = update?.config?.image;
  if (update === undefined || !isOnHost(image)) return body;
  const { app_name: app, machine_id: word } = request.params as { app_name: string; machine_id: string };
  const machine = findNamed(word, view.machines(app), { noun: "machine" });
  const now = machine && (view.value(`${KEYS.configs}${machine.id}`) as { config: MachineConfig } | undefined);
  return now?.config.image === image ? body : Buffer.from(JSON.stringify(await withDigest(update, images)));
}

/** Undefined for anything but an object: the other host says what is wrong with it. */
function parsed(body: Buffer): WithConfig | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
