/** The Debian package. See packaging/debian for its scripts, and packaging/systemd for its units. */
import { copyFile, cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { NOUNS } from "../../../packages/cli/src/commands.ts";
import { SCRIPTS } from "../../../packages/cli/src/completion/scripts.ts";
import { manualPages } from "../../../packages/cli/src/manual.ts";
import { ROOT } from "../node.mjs";
import { run } from "../run.mjs";
import { copyProgram, programVersion, write } from "./program.mjs";

const PROGRAM = "usr/lib/hibernaut";
/**
 * What the running platform starts, and the C libraries that Node is linked with. `npm run setup` installs the same, and
 * what a build needs.
 */
export const DEPENDS = [
  "debconf | debconf-2.0",
  "e2fsprogs",
  "iproute2",
  "libc6 (>= 2.28)",
  "libgcc-s1",
  "libstdc++6",
  "nftables",
  "qemu-system-x86 (>= 1:7.2)",
  "skopeo",
  "squashfs-tools (>= 1:4.5)",
];
/** restic is for those who keep backups elsewhere. */
const RECOMMENDS = ["ca-certificates", "restic"];
/** dpkg of Debian 12 and of Ubuntu 22.04 reads zstd, which packs Node ten times faster than xz. */
const COMPRESSION = ["-Zzstd", "-z12"];

const DESCRIPTION = `Description: apps in virtual machines that sleep
 Hibernaut runs apps as lightweight virtual machines on a server of your own. An
 idle machine is suspended to a snapshot and costs storage only; a request
 resumes it in milliseconds, exactly where it stopped.
`;

/**
 * Makes `hibernaut_<version>_amd64.deb` and returns its path.
 *
 * @param {string} root an empty or absent directory for the package's files
 * @param {string} out the directory that the package goes to
 * @param {{ version?: string }} [options] another version than the program's, for tests of upgrades
 */
export async function makeDebianPackage(root, out, { version } = {}) {
  const packageVersion = version ?? (await programVersion());
  await stageDebianPackage(root, packageVersion);
  const file = join(out, `hibernaut_${packageVersion}_amd64.deb`);
  await run("dpkg-deb", ["--root-owner-group", ...COMPRESSION, "--build", root, file]);
  return file;
}

/**
 * Lays out the package's files, with those of dpkg in `DEBIAN`.
 *
 * @param {string} root
 * @param {string} version
 */
export async function stageDebianPackage(root, version) {
  await copyProgram(join(root, PROGRAM), { node: true });
  await mkdir(join(root, "usr/bin"), { recursive: true });
  for (const name of ["hibernaut", "hib"])
    await symlink(`../lib/hibernaut/packages/cli/bin/hibernaut`, join(root, "usr/bin", name));
  await stageUnits(root);
  for (const [file, text] of Object.entries(completions())) await write(join(root, "usr/share", file), text);
  for (const { file, text } of manualPages(NOUNS, version))
    await writeZipped(join(root, "usr/share/man/man1"), file, text);
  await stageDocuments(root);
  await stageControl(root, version);
}

/** @param {string} root */
async function stageUnits(root) {
  const [from, to] = [join(ROOT, "packaging/systemd"), join(root, "usr/lib/systemd/system")];
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) await copyFile(join(from, name), join(to, name));
}

function completions() {
  return {
    "bash-completion/completions/hibernaut": SCRIPTS.bash,
    "bash-completion/completions/hib": SCRIPTS.bash,
    "zsh/vendor-completions/_hibernaut": SCRIPTS.zsh,
    "fish/vendor_completions.d/hibernaut.fish": SCRIPTS.fish,
  };
}

/** @param {string} root */
async function stageDocuments(root) {
  const to = join(root, "usr/share/doc/hibernaut");
  const license = await readFile(join(ROOT, "LICENSE"), "utf8");
  await write(join(to, "copyright"), license);
  await writeZipped(to, "changelog", await readFile(join(ROOT, "CHANGELOG.md"), "utf8"));
  // The dashboard and the alerts, where Debian has examples.
  await cp(join(ROOT, "examples/monitoring"), join(to, "examples/monitoring"), { recursive: true });
}

/** @param {string} root @param {string} version */
async function stageControl(root, version) {
  const kilobytes = await run("du", ["--summarize", "--block-size=1024", "--apparent-size", join(root, "usr")]);
  const fields = {
    Package: "hibernaut",
    Version: version,
    Architecture: "amd64",
    Maintainer: "The Hibernaut authors <hibernaut@localhost>",
    "Installed-Size": kilobytes.split("\t")[0],
    Depends: DEPENDS.join(", "),
    Recommends: RECOMMENDS.join(", "),
    Section: "admin",
    Priority: "optional",
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  await write(join(root, "DEBIAN/control"), `${lines.join("")}${DESCRIPTION}`);
  const from = join(ROOT, "packaging/debian");
  for (const name of await readdir(from)) {
    const text = (await readFile(join(from, name), "utf8")).replaceAll("@VERSION@", version);
    await write(join(root, "DEBIAN", name), text, name === "templates" ? 0o644 : 0o755);
  }
}

/**
 * Writes `name.gz`, as Debian has manual pages and changelogs. It has no time in it.
 *
 * @param {string} directory
 * @param {string} name
 * @param {string} text
 */
async function writeZipped(directory, name, text) {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${name}.gz`), gzipSync(text, { level: 9 }));
}
