/**
 * Who may import whom. `npm run check` runs dependency-cruiser with these rules; each says why in its comment.
 *
 * Imports run one way: api and proxy -> machines -> contracts -> packages/domain -> packages/lib. Types count.
 */
const SRC = "^packages/platform/src";
/** The composition roots: of the platform, from the host to its doors, with its backups, what a member of a cluster has besides, what judges connections by names, and what opens the port for Fly's clients; and of joining and mending a cluster; the doctor, which looks at every part directly; and the uninstaller, which removes each. */
const ROOTS = `${SRC}/(server|host|reach|machines|services|open-api|doors|backups|member|egress|fly|doctor|doctor/[a-z-]+|uninstall)\\.ts$|^packages/cluster/src/(join|repairs)\\.ts$`;
/**
 * How durations, sizes and schedules are written, which names, paths and numbers are valid, and which errors mean that a
 * file is not there: what the CLI shares with the platform, because it loads next to nothing and a copy in the CLI would
 * differ before long.
 */
const SHARED = [
  "^packages/lib/src/(absence|base64|given|ipv4|quantities|semaphore|words)\\.ts$",
  "^packages/domain/src/(naming|fields|cron|schedule|limits|guest-paths|check-times|egress|response-headers|tcp-handlers|preview|worker)\\.ts$",
];
/** The descriptions of a configuration's fields, from which forms are made. */
const FIELDS = "^packages/domain/src/(fields|limits)\\.ts$";
/** Packages that are no part of the platform. All others are. */
const APART = "^packages/(cli|client|compose|dashboard|jail|mcp)/";
/** Packages of which the composition roots alone use more than the contract: `contract.ts` or `index.ts`. */
const CONTRACTS = [
  ...["hypervisor", "network", "images", "store", "secrets", "volumes", "certs"],
  ...["guest", "snapshots", "machines"],
];
/** The same, of packages that know machines, or that machines do not need: machines know none of them. */
const ABOVE = ["checks", "telemetry", "events", "metering", "backup", "cluster", "proxy", "sandboxes", "fly", "api"];
/**
 * What anyone may use besides. A host alone does not load the cluster's index, but knows the names of its records. Tar is tar,
 * whoever stores images.
 */
const PUBLIC = ["^packages/cluster/src/keys\\.ts$", "^packages/images/src/tar\\.ts$"];
/** CLI files that load the platform into their own process. */
const IN_PROCESS = [
  ...["", "commands/"].map(
    (folder) =>
      `^packages/cli/src/${folder}(serve|proxy|doctor|uninstall|cluster|sandbox|fly|restore-set|restored-targets)\\.ts$`,
  ),
  "^packages/cli/src/backup/restoring\\.ts$",
];

/** @type {import("dependency-cruiser").IForbiddenRuleType[]} */
const contracts = [...CONTRACTS, ...ABOVE].map((part) => ({
  name: `only-${part}-contract-is-public`,
  comment: `server.ts, with what it opens, alone chooses the implementation of ${part}, so that it can be exchanged`,
  from: { path: "^packages/[^/]+/src/", pathNot: [APART, `^packages/${part}/`, ROOTS] },
  to: { path: `^packages/${part}/src/`, pathNot: [`^packages/${part}/src/(contract|index)\\.ts$`, ...PUBLIC] },
}));

/** @type {import("dependency-cruiser").IForbiddenRuleType[]} */
const doors = ["api", "proxy"].map((part) => ({
  name: `nothing-imports-${part}`,
  comment: "api and proxy are two doors to the same house: nothing depends on a door",
  from: { path: "^packages/[^/]+/src/", pathNot: [`^packages/${part}/`, ROOTS, ...IN_PROCESS] },
  to: { path: `^packages/${part}/` },
}));

/** @type {import("dependency-cruiser").IForbiddenRuleType[]} */
const rules = [
  {
    name: "no-file-cycles",
    comment: "files that import each other, be it for types, cannot be understood or moved one at a time",
    from: {},
    to: { circular: true },
  },
  {
    name: "no-folder-cycles",
    scope: "folder",
    comment: "two folders that import each other are one folder",
    from: { path: `${SRC}/[^/]+$` },
    to: { circular: true },
  },
  {
    name: "packages-share-what-they-export",
    comment: "what a package promises to others is what its package.json exports: the rest may change any day",
    from: { path: "^packages/([^/]+)/src/" },
    to: { path: "^packages/", pathNot: "^packages/$1/", dependencyTypes: ["local"] },
  },
  {
    name: "nothing-below-imports-the-platform",
    comment: "the platform is made of the other packages, and each of them works without it",
    from: { path: "^packages/[^/]+/src/", pathNot: [APART, "^packages/platform/"] },
    to: { path: "^packages/platform/" },
  },
  {
    name: "lib-stands-alone",
    comment: "lib holds helpers that know nothing of the product",
    from: { path: "^packages/lib/src/" },
    to: { path: "^packages/", pathNot: "^packages/lib/" },
  },
  {
    name: "domain-is-the-floor",
    comment: "everything imports the shared types, so they import nothing above them",
    from: { path: "^packages/domain/src/" },
    to: { path: "^packages/", pathNot: "^packages/(domain|lib)/" },
  },
  {
    name: "machines-knows-contracts-only",
    comment: "the heart must be testable without QEMU, HTTP and SQL",
    from: { path: "^packages/machines/src/" },
    to: {
      pathNot: [
        "^packages/(machines|domain|lib)/src/",
        `^packages/(${CONTRACTS.join("|")})/src/(contract|index)\\.ts$`,
        "^packages/settings/src/settings\\.ts$",
        "node_modules/croner/",
        "^(node:)?[a-z_]+(/promises)?$",
      ],
    },
  },
  {
    name: "machines-opens-no-sockets-or-databases",
    comment: "the heart must be testable without QEMU, HTTP and SQL",
    from: { path: "^packages/machines/src/" },
    to: { path: "^(node:)?(http|https|http2|net|tls|sqlite)$" },
  },
  {
    name: "the-http-engine-works-alone",
    comment: "what forwards requests asks where they go, and knows nothing of machines, records or other hosts",
    from: { path: "^packages/proxy/src/http/index\\.ts$" },
    to: { path: `^packages/(machines|store|checks|cluster|certs|images|hypervisor|platform)/`, reachable: true },
  },
  {
    name: "events-know-no-machines",
    comment: "what is told to strangers follows from what the store has, and nothing about machines waits for it",
    from: { path: "^packages/events/src/" },
    to: {
      pathNot: [
        "^packages/events/src/",
        "^packages/(domain|lib)/src/",
        "^packages/(store|secrets)/src/contract\\.ts$",
        "^packages/settings/src/settings\\.ts$",
        "node_modules/(standardwebhooks|p-limit)/",
        "^(node:)?[a-z_]+(/promises)?$",
      ],
    },
  },
  ...contracts,
  ...doors,
  {
    name: "nothing-imports-the-composition-root",
    comment: "server.ts and what it opens wire the parts, and a part that needs it cannot be used alone",
    from: { path: SRC, pathNot: ROOTS },
    to: { path: ROOTS },
  },
  {
    name: "the-platform-does-not-know-its-users",
    comment: "the CLI and the client talk to the platform over HTTP",
    from: { path: "^packages/[^/]+/src/", pathNot: APART },
    to: { path: "^(packages/(cli|client|mcp)|services)/" },
  },
  {
    name: "the-cli-reaches-the-platform-through-the-client",
    comment: "what the CLI can do, every user of the API can do",
    from: { path: "^packages/cli/src/", pathNot: IN_PROCESS },
    to: { path: "^packages/", pathNot: [APART, ...SHARED] },
  },
  {
    name: "serve-and-doctor-load-the-platform-late",
    comment: "every other command would pay for loading the platform",
    from: { path: "^packages/cli/src/" },
    to: {
      path: "^packages/",
      pathNot: [APART, ...SHARED],
      dynamic: false,
      dependencyTypesNot: ["type-only"],
    },
  },
  {
    name: "the-client-is-only-a-client",
    comment: "the client is installed where no platform is; `import type` leaves no trace at run time",
    from: { path: "^packages/client/src/" },
    to: { path: "^packages/", pathNot: "^packages/client/", dependencyTypesNot: ["type-only"] },
  },
  {
    name: "the-mcp-server-is-a-client",
    comment: "what tools can do, every user of the API can do, with the same rights",
    from: { path: "^packages/mcp/src/" },
    to: { path: "^packages/", pathNot: "^packages/(mcp|client|lib)/" },
  },
  {
    name: "the-dashboard-is-a-client-in-a-browser",
    comment: "what the dashboard can do, every user of the API can do; modules of Node do not load in a browser",
    from: { path: "^packages/dashboard/src/" },
    to: {
      path: ["^packages/", "^(node:)?[a-z_]+(/promises)?$"],
      pathNot: ["^packages/dashboard/src/", "^packages/client/src/browser\\.ts$", FIELDS],
    },
  },
  {
    name: "nothing-imports-the-dashboard",
    comment: "the platform serves the dashboard's files, and knows nothing of them",
    from: { pathNot: "^packages/dashboard/" },
    to: { path: "^packages/dashboard/" },
  },
  {
    name: "the-browser-client-needs-no-node",
    comment: "modules of Node do not load in a browser, and neither does what imports them",
    from: { path: "^packages/client/src/browser\\.ts$" },
    to: { path: "^(node:)?[a-z_]+(/promises)?$", reachable: true },
  },
  {
    name: "services-know-nothing-of-the-platform",
    comment: "a service runs anywhere, and this is how it stays so",
    from: { path: "^services/" },
    to: { path: ["^packages/", "^node_modules/@hibernaut/"] },
  },
  {
    name: "packages-know-no-service",
    comment: "services are what the platform is tried with, not part of it",
    from: { path: "^packages/" },
    to: { path: "^services/" },
  },
];

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: rules.map((rule) => ({ severity: "error", ...rule })),
  options: {
    // Imports of types count too.
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
