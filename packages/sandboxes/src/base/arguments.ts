/** What mmdebstrap is called with. Pure. */
import { BASE_LOCALE, BASE_PACKAGES, BASE_USER } from "./packages.ts";
import type { Distribution } from "./sources.ts";

interface ArgumentOptions {
  /** Whether mmdebstrap runs as root. If not, it needs a range of user ids in /etc/subuid, and the package uidmap. */
  root: boolean;
  distribution: Distribution;
  /** Lines of a sources.list. By default, mmdebstrap knows the distribution's. */
  sources: readonly string[];
}

/** A sandbox reads no manuals, and speaks one language. Packages that it installs later leave them out as well. */
const LEFT_OUT = [
  "path-exclude=/usr/share/doc/*",
  // Licenses demand that they come along.
  "path-include=/usr/share/doc/*/copyright",
  "path-exclude=/usr/share/man/*",
  "path-exclude=/usr/share/info/*",
  "path-exclude=/usr/share/lintian/*",
  "path-exclude=/usr/share/locale/*",
];

/** The arguments that make mmdebstrap write the root file system, as a tar archive, to its standard output. */
export function mmdebstrapArguments({ root, distribution, sources }: ArgumentOptions): string[] {
  return [
    `--mode=${root ? "root" : "unshare"}`,
    "--variant=minbase",
    "--format=tar",
    // Machines run no other architecture.
    "--architectures=amd64",
    `--include=${BASE_PACKAGES.map(({ name }) => name).join(",")}`,
    ...LEFT_OUT.map((option) => `--dpkgopt=${option}`),
    ...hooks().map((command) => `--customize-hook=${command}`),
    distribution.suite,
    "-",
    ...sources,
  ];
}

/** Shell commands that finish the root file system, which is at `$1`. The shell runs as root, or as root of mmdebstrap's namespace. */
function hooks(): string[] {
  const { name, uid, home, shell } = BASE_USER;
  const sudoers = `"$1/etc/sudoers.d/${name}"`;
  return [
    `chroot "$1" useradd --uid ${uid} --user-group --create-home --home-dir ${home} --shell ${shell} ${name}`,
    `echo '${name} ALL=(ALL:ALL) NOPASSWD: ALL' > ${sudoers} && chmod 0440 ${sudoers}`,
    `echo 'LANG=${BASE_LOCALE}' > "$1/etc/default/locale"`,
    // They are the host's. The platform writes those of the machine.
    'rm -f "$1/etc/hostname" "$1/etc/resolv.conf"',
  ];
}
