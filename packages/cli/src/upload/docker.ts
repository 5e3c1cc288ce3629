/** Asks this machine's Docker, through its own command. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { CliError } from "../failure.ts";

const run = promisify(execFile);

/** Docker answers at once, unless it is not running. */
const LOOK_TIMEOUT_MS = 10_000;

/** Whether Docker on this machine has an image. False when there is no Docker. */
export async function dockerHas(name: string): Promise<boolean> {
  return run("docker", ["image", "inspect", "--format", "{{.Id}}", name], { timeout: LOOK_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

/** Writes an image of this machine's Docker to a file. Rejects with a CliError, or with the signal's reason. */
export async function dockerSave(name: string, file: string, signal: AbortSignal): Promise<void> {
  try {
    await run("docker", ["save", "--output", file, name], { signal });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { code, stderr = "" } = error as { code?: unknown; stderr?: string };
    if (code === "ENOENT") {
      const message = `docker-daemon:${name} cannot be uploaded: there is no docker command on this machine. Save the image to a file where it is, and use docker-archive:.`;
      throw new CliError("unavailable", message);
    }
    const reason = stderr.trim().split("\n").at(-1) ?? "";
    const message = `docker-daemon:${name} cannot be uploaded: docker save failed (${reason || String(code)}). Check the name with \`docker image ls\`.`;
    throw new CliError("failed_precondition", message);
  }
}
