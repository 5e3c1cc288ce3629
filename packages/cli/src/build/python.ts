/** Builds the image of a Python app: the host's Python with its standard library, the requirements, the app. */
import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { CliError } from "../failure.ts";
import { addBase, type BaseParts } from "./base.ts";
import { readContext } from "./context.ts";
import { APP_USER, complete } from "./entries.ts";
import { ignoring } from "./ignore.ts";
import { type Job, type Made, settingsFor } from "./job.ts";
import { type Layer, writeLayer } from "./layer.ts";
import { packApp } from "./node.ts";
import { pythonCommand } from "./python-plan.ts";
import { runTool } from "./run-tool.ts";

/** Parts of the standard library that no server needs, and packages that are installed on the host. */
const LEFT_OUT = [
  "test",
  "idlelib",
  "tkinter",
  "turtledemo",
  "ensurepip",
  "config-*",
  "site-packages",
  "dist-packages",
];
/** Where the requirements are in the image. */
const PACKAGES = "usr/local/lib/hibernaut/python";
/** Python itself, without a virtual environment or a version manager in front of it. */
const ASK = `import json, os, sys, sysconfig
exe = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({"exe": os.path.realpath(exe), "lib": sysconfig.get_path("stdlib"), "version": "%d.%d" % sys.version_info[:2]}))`;

interface Python {
  exe: string;
  /** The directory of the standard library. */
  lib: string;
  /** `3.11` */
  version: string;
}

export async function buildPython(job: Job): Promise<Made> {
  const { folder, place, port, commandNamed, report, signal } = job;
  const file = join(folder.path, "requirements.txt");
  const requirements = existsSync(file) ? await readFile(file, "utf8") : "";
  const command = pythonCommand(folder, requirements, { port, commandNamed });
  const answer = await runTool("python3", ["-c", ASK], { cwd: place.work, log: place.log, signal });
  const python = JSON.parse(answer) as Python;
  const base = await report.progress(
    `Packing Python ${python.version}`,
    baseOf(python, signal).then((parts) => addBase(place.bases, place.blobs, { parts, signal })),
  );
  const packages = requirements.trim() === "" ? [] : await installed(job, python, requirements);
  const env = {
    PYTHONPATH: `/${PACKAGES}`,
    // Logs are read while the app runs.
    PYTHONUNBUFFERED: "1",
    SSL_CERT_FILE: "/etc/ssl/certs/ca-certificates.crt",
  };
  return { layers: [base, ...packages, await packApp(job)], settings: settingsFor(command, { port, env }) };
}

/** The program goes next to its library, where it looks for it first. */
async function baseOf({ exe, lib, version }: Python, signal: AbortSignal): Promise<BaseParts> {
  const to = `usr/local/lib/python${version}`;
  const { entries } = await readContext(lib, ignoring([...LEFT_OUT, "**/test", "**/tests"]), { to, signal });
  // Compiled modules are valid for the time of their source.
  const files = await Promise.all(
    entries.map(async (entry) =>
      entry.from === undefined
        ? { ...entry, owner: 0 }
        : { ...entry, owner: 0, time: Math.floor((await stat(entry.from)).mtimeMs / 1000) },
    ),
  );
  const modules = existsSync(join(lib, "lib-dynload"))
    ? (await readdir(join(lib, "lib-dynload"))).filter((name) => name.endsWith(".so"))
    : [];
  const programs = Object.fromEntries(
    modules.map((name) => [`${to}/lib-dynload/${name}`, join(lib, "lib-dynload", name)]),
  );
  const program = `usr/local/bin/python${version}`;
  const link = { kind: "link", mode: 0o777, owner: 0, size: 0, target: basename(program) } as const;
  return {
    name: "python",
    programs: { ...programs, [program]: exe },
    files: [...files, { ...link, path: "usr/local/bin/python3" }, { ...link, path: "usr/local/bin/python" }],
  };
}

/** The layer with the requirements. Made again only if these change. */
async function installed(job: Job, python: Python, requirements: string): Promise<Layer[]> {
  const { folder, place, fresh, report, signal } = job;
  const file = join(folder.path, "requirements.txt");
  if (/^\s*(?:-[erc]|--(?:requirement|editable|constraint)|\.)/m.test(requirements))
    throw new CliError(
      "build_unknown",
      `${file} refers to other files or directories, which is not supported. List all packages in it, or write a Dockerfile.`,
    );
  const key = hash("sha256", JSON.stringify([python, requirements]));
  return place.layersFor(key, fresh, async () => {
    const target = join(place.work, "packages");
    const options = { cwd: folder.path, log: place.log, signal };
    const pip = ["-m", "pip", "install", "--target", target, "--no-compile", "--disable-pip-version-check"];
    const install = runTool("python3", [...pip, "--requirement", file], { ...options, what: "`pip install`" });
    await report.progress("Running pip install", install);
    // Compiled once here and not at every cold start; without times, so that the same packages give the same layer.
    const compile = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", target];
    await report.progress("Compiling the packages", runTool("python3", compile, options));
    const { entries } = await readContext(target, ignoring(["bin"]), { to: PACKAGES, signal });
    const own = entries.map((entry) => ({ ...entry, owner: entry.owner === APP_USER ? 0 : entry.owner }));
    return [await report.progress("Packing the packages", writeLayer(place.blobs, complete(own), signal))];
  });
}
