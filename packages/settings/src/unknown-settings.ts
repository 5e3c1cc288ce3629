/** Finds variables that look like settings but are not, so that a typing error is not silently ignored. */
import { nearest } from "@hibernaut/lib/nearest";
import { FORMER_SETTING_NAMES, readSettingsFile, SETTING_NAMES } from "./settings.ts";

const PREFIX = "HIBERNAUT_";

/** Variables that other programs read, and that may still be in the platform's environment. */
const OTHER_VARIABLES: readonly string[] = [
  // the CLI and the setup
  ...[
    "HIBERNAUT_API_URL",
    "HIBERNAUT_API_CA",
    "HIBERNAUT_API_CLIENT_CERT",
    "HIBERNAUT_API_CLIENT_KEY",
    "HIBERNAUT_API_TOKEN",
    "HIBERNAUT_APP",
    "HIBERNAUT_PAGER",
    "HIBERNAUT_BUILD_DIR",
    "HIBERNAUT_LEASE_NONCE",
    "HIBERNAUT_LINK_FOLDER",
  ],
  // the DNS hook
  ...["HIBERNAUT_DNS_ACTION", "HIBERNAUT_DNS_RECORD", "HIBERNAUT_DNS_VALUE"],
  // apps in machines, in which a platform may run too
  ...["HIBERNAUT_APP_NAME", "HIBERNAUT_IMAGE_REF", "HIBERNAUT_MACHINE_ID", "HIBERNAUT_MACHINE_VERSION"],
  ...["HIBERNAUT_PRIVATE_IP", "HIBERNAUT_VM_MEMORY_MB"],
  // tests and benches
  ...[
    "HIBERNAUT_FUZZ_RUNS",
    "HIBERNAUT_LONG_TESTS",
    "HIBERNAUT_MOVES",
    "HIBERNAUT_NESTED_CYCLES",
    "HIBERNAUT_POWER_CUTS",
    "HIBERNAUT_POWER_FLUSH",
    "HIBERNAUT_FUZZ_SEED",
    "HIBERNAUT_POWER_SEED",
    "HIBERNAUT_SOAK",
    "HIBERNAUT_TEST_ACCELERATOR",
    "HIBERNAUT_TEST_DISK",
    "HIBERNAUT_TEST_KVM_VERDICT",
    "HIBERNAUT_TEST_REPORT",
    "HIBERNAUT_TEST_THROUGH",
    "HIBERNAUT_TORTURE_S",
    "HIBERNAUT_TORTURE_SEED",
  ],
];

/** Returns a warning for each variable or name in `settings.json` that begins like a setting but is unknown. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const { file, values } = readSettingsFile(environment);
  const known = new Set([...SETTING_NAMES, ...FORMER_SETTING_NAMES, ...OTHER_VARIABLES]);
  const set = Object.keys(environment).filter((name) => name.startsWith(PREFIX) && environment[name] !== "");
  const unknown = (names: string[]) => names.filter((name) => !known.has(name)).sort();
  return [
    ...unknown(set).map((name) => sentence(`The variable ${name}`, name)),
    ...unknown(Object.keys(values)).map((name) => sentence(`${name} in ${file}`, name)),
  ];
}

function sentence(what: string, name: string): string {
  const bare = (full: string) => full.replace(PREFIX, "").toLowerCase();
  const near = nearest(bare(name), SETTING_NAMES.map(bare));
  const hint =
    near === undefined ? "See docs/settings.md for all settings." : `Did you mean ${PREFIX}${near.toUpperCase()}?`;
  return `${what} is not a setting and has no effect. ${hint}`;
}
