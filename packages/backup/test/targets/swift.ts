/**
 * Debian's OpenStack Swift for tests, which speaks S3 over TLS, and which `npm run setup -- --tests` unpacks: one process for each of
 * its servers, all on loopback, with everything in a temporary directory.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { userInfo } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { findTool, TEST_TOOLS, toolEnvironment } from "../../../../scripts/lib/test-tools.mjs";
import { openTempFolder } from "../../../platform/test/helpers/temp.ts";

/** Runs a program of Swift's that looks for `swift.conf` in a directory, and not in /etc/swift, before it reads its own `swift_dir`. */
const ELSEWHERE = `
import runpy, sys
from swift.common import utils
utils.set_swift_dir(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")`;
const PYTHON = "/usr/bin/python3";
const SERVERS = ["account", "container", "object"] as const;
/** Only a fault reaches it. Python starts slowly next to emulated guests. */
const START_MS = 60_000;

export const ACCESS = { accessKey: "backup:tester", secretKey: "a-secret-of-the-tests" };

export interface Swift extends AsyncDisposable {
  port: number;
  /** The certificate that clients have to trust. */
  certificate: string;
  /** The target in a bucket. */
  url(bucket: string): string;
  /** Lets a bucket take at most this number of bytes. */
  limit(bucket: string, bytes: number): Promise<void>;
}

export async function startSwift(): Promise<Swift> {
  const folder = await openTempFolder("swift");
  const children: ChildProcess[] = [];
  const environment = {
    ...toolEnvironment(),
    PYTHONPATH: join(TEST_TOOLS, "usr/lib/python3/dist-packages"),
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const begin = (name: string, program: string, args: string[]) => {
    const child = spawn(program, args, { stdio: "ignore", env: environment });
    child.on("error", (error) =>
      console.error(`${name} does not start: ${error.message} (npm run setup -- --tests gets it)`),
    );
    children.push(child);
  };
  const beginSwift = (name: string) => {
    const program = findTool(`swift-${name}`);
    begin(name, PYTHON, ["-c", ELSEWHERE, folder.path, program, join(folder.path, `${name}.conf`)]);
  };
  const dispose = async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    await folder.dispose();
  };
  try {
    const ports = { account: await freePort(), container: await freePort(), object: await freePort() };
    const [port, cache] = [await freePort(), await freePort()];
    const certificate = join(folder.path, "certificate.pem");
    makeCertificate(folder.path, certificate);
    await mkdir(join(folder.path, "disks/d1"), { recursive: true });
    await writeFile(join(folder.path, "swift.conf"), SWIFT);
    for (const name of SERVERS) {
      makeRing(folder.path, { name, port: ports[name], environment });
      await writeFile(join(folder.path, `${name}-server.conf`), storageServer(folder.path, name, ports[name]));
      beginSwift(`${name}-server`);
    }
    begin("memcached", findTool("memcached"), [
      "-l",
      "127.0.0.1",
      "-p",
      String(cache),
      "-m",
      "16",
      "-u",
      userInfo().username,
    ]);
    await writeFile(join(folder.path, "proxy-server.conf"), proxyServer(folder.path, port, cache));
    beginSwift("proxy-server");
    await vi.waitFor(() => ask(port, "GET", "/healthcheck"), { timeout: START_MS, interval: 200 });
    return {
      port,
      certificate,
      url: (bucket) => `s3://127.0.0.1:${port}/${bucket}/home`,
      async limit(bucket, bytes) {
        const token = (await ask(port, "GET", "/auth/v1.0", authentication())).headers["x-auth-token"] as string;
        const headers = { "x-auth-token": token, "x-container-meta-quota-bytes": String(bytes) };
        await ask(port, "PUT", `/v1/AUTH_backup/${bucket}`, headers);
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function authentication() {
  return { "x-auth-user": ACCESS.accessKey, "x-auth-key": ACCESS.secretKey };
}

/** Asks Swift in its own words. Rejects unless it agrees. */
async function ask(port: number, method: string, path: string, headers: Record<string, string> = {}) {
  const sent = request({ port, host: "127.0.0.1", method, path, headers, rejectUnauthorized: false, timeout: 5000 });
  sent.on("timeout", () => sent.destroy(new Error("Swift does not answer")));
  sent.end();
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  reply.resume();
  await once(reply, "end");
  if ((reply.statusCode ?? 500) >= 300) throw new Error(`${method} ${path}: ${reply.statusCode}`);
  return reply;
}

function makeCertificate(folder: string, certificate: string): void {
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  const files = ["-keyout", join(folder, "key.pem"), "-out", certificate];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, ...files], { stdio: "ignore" });
}

interface Ring {
  name: string;
  port: number;
  environment: NodeJS.ProcessEnv;
}

/** Says that everything is on the one disk. */
function makeRing(folder: string, { name, port, environment }: Ring): void {
  const builder = join(folder, `${name}.builder`);
  const run = (...args: string[]) =>
    execFileSync(findTool("swift-ring-builder"), [builder, ...args], { stdio: "ignore", env: environment });
  run("create", "4", "1", "0");
  const place = ["--region", "1", "--zone", "1", "--ip", "127.0.0.1", "--port", String(port)];
  run("add", ...place, "--device", "d1", "--weight", "1");
  run("rebalance");
}

const SWIFT = `[swift-hash]
swift_hash_path_suffix = tests
[storage-policy:0]
name = only
default = yes
`;

/** What all servers have in common. Without workers, each is one process. */
function common(folder: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${folder}/disks
mount_check = false
`;
}

function storageServer(folder: string, name: string, port: number): string {
  return `${common(folder, port)}[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
recon_cache_path = ${folder}
`;
}

function proxyServer(folder: string, port: number, cache: number): string {
  return `${common(folder, port)}cert_file = ${folder}/certificate.pem
key_file = ${folder}/key.pem
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache s3api tempauth bulk container-quotas slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${cache}
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_backup_tester = ${ACCESS.secretKey} .admin
[filter:bulk]
use = egg:swift#bulk
[filter:container-quotas]
use = egg:swift#container_quotas
[filter:slo]
use = egg:swift#slo
`;
}
