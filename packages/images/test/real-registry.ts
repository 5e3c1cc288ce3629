/** Debian's docker-registry, which `npm test` unpacks, without installing it, when it is missing. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { findTool } from "../../../scripts/lib/test-tools.mjs";
import { skopeo } from "./fixtures.ts";

const PROGRAM = findTool("docker-registry");

export const LOGIN = { username: "me", password: "s3cret: word" };

export interface RealRegistry {
  /** `127.0.0.1:port` */
  host: string;
  process: ChildProcess;
  /** Pushes the only image of an OCI layout. */
  push(layout: string, name: string, ...options: string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a registry with its data below `folder`: with `login` it requires that login, with `tls` it has a self-signed certificate. */
export async function startRegistry(folder: string, { login = false, tls = false } = {}): Promise<RealRegistry> {
  const host = `127.0.0.1:${await freePort()}`;
  const htpasswd = join(folder, "htpasswd");
  if (login) await writeFile(htpasswd, `${LOGIN.username}:${bcrypt(LOGIN.password)}\n`);
  const config = {
    version: 0.1,
    storage: { filesystem: { rootdirectory: join(folder, "registry") } },
    http: { addr: host, ...(tls && { tls: await makeCertificate(folder) }) },
    ...(login && { auth: { htpasswd: { realm: "test", path: htpasswd } } }),
  };
  const file = join(folder, `registry-${host.replace(":", "-")}.yml`);
  await writeFile(file, JSON.stringify(config));
  const server = spawn(PROGRAM, ["serve", file], { stdio: "ignore" });
  server.on("error", (error) =>
    console.error(`docker-registry does not start: ${error.message} (npm run setup -- --tests gets it)`),
  );
  // A TLS server answers plain HTTP with 400.
  const status = tls ? 400 : login ? 401 : 200;
  try {
    await vi.waitFor(async () => expect((await fetch(`http://${host}/v2/`)).status).toBe(status), { timeout: 10_000 });
  } catch (error) {
    server.kill();
    throw error;
  }
  const creds = login ? ["--dest-creds", `${LOGIN.username}:${LOGIN.password}`] : [];
  return {
    host,
    process: server,
    async push(layout, name, ...options) {
      const target = ["--dest-tls-verify=false", ...creds, ...options, `oci:${layout}`, `docker://${host}/${name}`];
      await skopeo("copy", "-q", ...target);
    },
    async stop() {
      if (server.exitCode === null && server.kill()) await new Promise((resolve) => server.once("exit", resolve));
    },
  };
}

/** Makes a self-signed certificate. */
async function makeCertificate(folder: string): Promise<{ certificate: string; key: string }> {
  const [certificate, key] = [join(folder, "registry.crt"), join(folder, "registry.key")];
  const options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "1"];
  execFileSync("openssl", ["req", ...options, "-out", certificate, "-keyout", key], { stdio: "ignore" });
  return { certificate, key };
}

/** Hashes a password for an htpasswd file, with the C library and Perl, which every Debian has. */
function bcrypt(password: string): string {
  const script = 'print crypt($ARGV[0], "\\$2y\\$05\\$abcdefghijklmnopqrstuu")';
  return execFileSync("perl", ["-e", script, password], { encoding: "utf8" });
}
