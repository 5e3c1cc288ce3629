/**
 * Who may import whom, as data. `check-imports.mjs` holds the code to it.
 *
 * Paths are the repository's; packages and Node's modules go by their names. In a pattern `*`
 * stands for one part of a path and `**` for any number of them.
 */

const SRC = "packages/platform/src";
/** The composition root, the doctor that looks at every part by itself, and what takes each away again. */
const ROOTS = [`${SRC}/server.ts`, `${SRC}/doctor.ts`, `${SRC}/uninstall.ts`];

/** How people write durations and sizes. It imports nothing, and a second one would take other forms before long. */
const QUANTITIES = `${SRC}/lib/quantities.ts`;

/**
 * @typedef {object} Rule
 * @property {string} name
 * @property {string[]} files whom the rule binds
 * @property {string[]} [except] files it does not bind
 * @property {string[]} [only] an import must fit one of these
 * @property {string[]} [never] and none of these ...
 * @property {string[]} [unless] ... but one of these is fine all the same
 * @property {("type" | "dynamic")[]} [spare] kinds of imports the rule does not look at
 * @property {string} reason ends the sentence "because ..."
 */

/**
 * The parts that stand behind a contract. Only the composition root knows what is behind it.
 *
 * @type {Rule[]}
 */
const contracts = ["hypervisor", "network", "images", "store", "secrets", "volumes"].map((part) => ({
  name: `only ${part}/contract.ts is public`,
  files: [`${SRC}/**`],
  except: [`${SRC}/${part}/**`, ...ROOTS],
  never: [`${SRC}/${part}/**`],
  unless: [`${SRC}/${part}/contract.ts`],
  reason: `an implementation of ${part} is chosen in server.ts alone, so that it can be exchanged`,
}));

/** @type {Rule[]} */
export const RULES = [
  {
    name: "machines knows contracts only",
    files: [`${SRC}/machines/**`],
    only: [
      `${SRC}/machines/**`,
      `${SRC}/*/contract.ts`,
      `${SRC}/guest/**`,
      `${SRC}/snapshots/**`,
      `${SRC}/domain/**`,
      `${SRC}/lib/**`,
      `${SRC}/settings.ts`,
      "typebox",
      "typebox/**",
      "node:*",
      "node:*/**",
    ],
    never: ["node:http", "node:https", "node:http2", "node:net", "node:tls", "node:sqlite"],
    reason: "the heart must be testable without QEMU, HTTP and SQL",
  },
  {
    name: "what stands below machines does not look up",
    files: ["hypervisor", "network", "images", "store", "secrets", "volumes", "snapshots", "guest"].map(
      (part) => `${SRC}/${part}/**`,
    ),
    never: [`${SRC}/machines/**`, `${SRC}/api/**`, `${SRC}/proxy/**`],
    reason: "imports run one way: api and proxy, then machines, then the contracts",
  },
  ...contracts,
  {
    name: "api and proxy stand alone",
    files: [`${SRC}/**`],
    except: ROOTS,
    never: [`${SRC}/api/**`, `${SRC}/proxy/**`],
    unless: ["{same part}"],
    reason: "they are two doors to the same house: nothing depends on a door",
  },
  {
    name: "nothing imports the composition root",
    files: [`${SRC}/**`],
    except: ROOTS,
    never: ROOTS,
    reason: "server.ts wires the parts, and a part that needs it cannot be used alone",
  },
  {
    name: "the platform does not know its users",
    files: [`${SRC}/**`],
    never: ["packages/cli/**", "packages/client/**", "services/**"],
    reason: "the command line and the client talk to the platform over HTTP",
  },
  {
    name: "the command line reaches the platform through the client",
    files: ["packages/cli/src/**"],
    except: ["serve", "proxy", "doctor", "uninstall"].flatMap((name) => [
      `packages/cli/src/**/${name}.ts`,
      `packages/cli/src/${name}.ts`,
    ]),
    never: ["packages/platform/**"],
    unless: [QUANTITIES],
    reason: "what the command line can do, every user of the API can do",
  },
  {
    name: "serve and doctor load the platform late",
    files: ["packages/cli/src/**"],
    never: ["packages/platform/**"],
    unless: [QUANTITIES],
    spare: ["type", "dynamic"],
    reason: "every other command would pay for loading the platform",
  },
  {
    name: "the client is only a client",
    files: ["packages/client/src/**"],
    never: ["packages/platform/**", "packages/cli/**"],
    spare: ["type"],
    reason: "it is installed where no platform is; `import type` leaves no trace at run time",
  },
  {
    name: "services know nothing of the platform",
    files: ["services/**"],
    never: ["packages/**"],
    reason: "a service runs anywhere, and this is how it stays so",
  },
  {
    name: "packages know no service",
    files: ["packages/**"],
    never: ["services/**"],
    reason: "services are what the platform is tried with, not part of it",
  },
];

/** Fewer files than this in the src of a package, and the check has looked at the wrong place. */
export const LEAST_FILES = { "packages/platform": 20, "packages/client": 1, "packages/cli": 1 };
