/**
 * A fresh Debian in a directory, to try what people do on a new host. Needs root.
 *
 * Its mounts and processes are in namespaces of their own, so that they end with whatever runs there.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { findTool, TEST_TOOLS } from "../../../../scripts/lib/test-tools.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const MIRROR = "http://deb.debian.org/debian";
/** What the README asks for, and nothing else. */
const PACKAGES = "nodejs npm git";
/** Where its user has the repository. Only root can enter the directory above. */
export const REPOSITORY = "/root/hibernaut";

const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
/** How this host reaches the network is not for us to know: the variables go along. */
const ABOUT_THE_NETWORK = /proxy|ssl_cert|ca_certs|^npm_config_(registry|cafile)$/i;

/** `$1` is the directory, `$2` what to run there. Its root is a mount, as that of every real system is. */
const ENTER = `set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --rbind /dev "$1/dev"
exec chroot "$1" /bin/bash -c "$2"`;

export interface Ended {
  code: number | null;
  out: string;
  err: string;
}

export class BareSystem {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Makes a system of a release (`trixie`) in an empty directory. With `repository`, which is the default, it has a copy
   * of this repository and the packages that the README asks for.
   */
  static async make(release: string, folder: string, { repository = true } = {}): Promise<BareSystem> {
    const system = new BareSystem(folder);
    const scripts = join(TEST_TOOLS, "usr/share/debootstrap");
    await inNamespaces(["sh", findTool("debootstrap"), "--variant=minbase", release, folder, MIRROR], {
      ...process.env,
      ...(existsSync(scripts) && { DEBOOTSTRAP_DIR: scripts }),
    }).then(must);
    await system.#connect();
    const packages = repository ? PACKAGES : "";
    must(
      await system.run(`apt-get -q update && apt-get -qy --no-install-recommends install ${packages} ca-certificates`),
    );
    // The package has just written its own.
    if (existsSync(CERTIFICATES)) await copyFile(CERTIFICATES, join(folder, CERTIFICATES));
    if (repository) await copyRepository(join(folder, REPOSITORY));
    return system;
  }

  /** Runs a line as root; `offline` in a network of its own, where there is nothing but loopback. */
  run(line: string, { offline = false } = {}): Promise<Ended> {
    const env = Object.entries(process.env).filter(([name]) => ABOUT_THE_NETWORK.test(name));
    return inNamespaces(
      ["sh", "-c", ENTER, "sh", this.#folder, line],
      {
        ...Object.fromEntries(env),
        PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME: "/root",
        LANG: "C.UTF-8",
        DEBIAN_FRONTEND: "noninteractive",
      },
      offline ? ["--net"] : [],
    );
  }

  /** Gives it what this host knows about its network: name servers, certificates, settings of apt and npm. */
  async #connect(): Promise<void> {
    const settings = join("/etc/apt/apt.conf.d");
    for (const name of await readdir(settings)) {
      const file = join(settings, name);
      if (/^\s*Acquire/m.test(await readFile(file, "utf8"))) await this.#give(file);
    }
    const npm = process.env["npm_config_userconfig"] ?? join(homedir(), ".npmrc");
    for (const file of ["/etc/resolv.conf", CERTIFICATES]) await this.#give(file);
    if (existsSync(npm)) await this.#give(npm, "/root/.npmrc");
  }

  async #give(file: string, path = file): Promise<void> {
    if (!existsSync(file)) return;
    await mkdir(dirname(join(this.#folder, path)), { recursive: true });
    await writeFile(join(this.#folder, path), await readFile(file));
  }
}

/** Fails with what a program said last. */
export function must(ended: Ended): Ended {
  if (ended.code === 0) return ended;
  throw new Error(
    `It ended with ${ended.code}: ${`${ended.out}\n${ended.err}`.trim().split("\n").slice(-30).join("\n")}`,
  );
}

async function inNamespaces(command: string[], env: NodeJS.ProcessEnv, more: string[] = []): Promise<Ended> {
  const child = spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", ...more, ...command], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, out, err };
}

/** All files that git knows or would: no build, no dependencies. */
async function copyRepository(to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const script = 'git ls-files -coz --exclude-standard --deduplicate | tar -c --null -T - | tar -xC "$0"';
  await promisify(execFile)("bash", ["-o", "pipefail", "-c", script, to], { cwd: ROOT });
}
