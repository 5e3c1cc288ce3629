/** Asks the host's Docker what skopeo does not tell: which image a name currently stands for. */
import { request } from "node:http";
import { HibernautError } from "@hibernaut/domain/errors";
import { type DaemonReference, formatReference } from "./reference.ts";

const DEFAULT_HOST = "unix:///var/run/docker.sock";
const TIMEOUT_MS = 30_000;
const MAX_REPLY_BYTES = 4 * 1024 * 1024;

/** Returns where Docker listens, in the form of DOCKER_HOST: `unix://PATH` or `tcp://HOST:PORT`. */
export function dockerHost(environment: NodeJS.ProcessEnv = process.env): string {
  return environment.DOCKER_HOST || DEFAULT_HOST;
}

/** Returns an image's id, which changes with its content. Rejects with `not_found` or `unavailable`. */
export async function daemonImageId(reference: DaemonReference): Promise<string> {
  const { repository, tag, host } = reference;
  const image = formatReference(reference);
  const { status, text } = await ask(`/images/${host}/${repository}:${tag}/json`, image);
  if (status === 404) {
    const message = `Docker on the platform's host has no image ${image}. Run \`docker image ls\` there to see what it has, or build the image.`;
    throw new HibernautError("not_found", message, { image });
  }
  const id = status === 200 ? idIn(text) : undefined;
  if (id !== undefined) return id;
  throw new HibernautError(
    "unavailable",
    `Docker answered a request about ${image} with status ${status}. Try again, or use docker save and docker-archive:.`,
    { image },
  );
}

function ask(path: string, image: string): Promise<{ status: number; text: string }> {
  const host = new URL(dockerHost());
  const where =
    host.protocol === "unix:"
      ? { socketPath: host.pathname }
      : { host: host.hostname, port: Number(host.port || 2375) };
  return new Promise((resolve, reject) => {
    const sent = request({ ...where, path, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_REPLY_BYTES) response.destroy(new Error("the answer is too long"));
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", (error) => reject(noDocker(error, image)));
    });
    sent.on("error", (error) => reject(noDocker(error, image)));
    sent.end();
  });
}

function idIn(text: string): string | undefined {
  try {
    const { Id } = JSON.parse(text) as { Id?: unknown };
    return typeof Id === "string" && Id !== "" ? Id : undefined;
  } catch {
    return undefined;
  }
}

function noDocker(error: Error, image: string): HibernautError {
  const message = `Docker does not answer at ${dockerHost()} on the platform's host (${error.message}), so ${image} cannot be read. Start Docker, give the platform's user access to it, or use docker save and docker-archive:.`;
  return new HibernautError("unavailable", message, { image });
}
