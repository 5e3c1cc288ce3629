/** Builds the program with Fly's client, from sources that are on this host, and from nowhere else. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where the program's own sources are. */
const PROGRAM = join(import.meta.dirname, "program");
/** What a directory of sources must have. */
const CLIENT = "src/github.com/superfly/fly-go/flaps/flaps.go";
/** Ten minutes: with an empty cache, a minute and a half on two cores. */
const BUILD_MS = 10 * 60_000;

/**
 * Says why it cannot be built, if so.
 *
 * @param {string[]} sources @param {string} go @returns {string | undefined}
 */
export function missing(sources, go) {
  if (!sources.some((each) => existsSync(join(each, CLIENT)))) return `No directory named with --source has ${CLIENT}.`;
  try {
    execFileSync(go, ["version"], { stdio: "ignore" });
    return undefined;
  } catch (error) {
    return `${go} does not run: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Returns the path of the program. Throws if it cannot be built; the compiler's own words are on standard error.
 *
 * @param {string[]} sources Directories as in GOPATH: what is imported as `a/b` is in `src/a/b` of one of them.
 * @param {string} go @param {string} folder For what is built.
 */
export function buildProgram(sources, go, folder) {
  const program = join(folder, "program");
  execFileSync(go, ["build", "-o", program, "."], {
    cwd: PROGRAM,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: BUILD_MS,
    env: {
      ...process.env,
      // Modules would be looked for at a proxy; nothing but what is in the sources may be used.
      ...{ GO111MODULE: "off", GOFLAGS: "", GOPROXY: "off", GOTOOLCHAIN: "local", CGO_ENABLED: "0" },
      GOPATH: sources.join(":"),
    },
  });
  return program;
}
