/** Variables that look like settings and are none: a slip of the pen must not pass for the default that was wanted. */
import { nearest } from "./lib/nearest.ts";
import { FORMER_SETTING_NAMES, readSettingsFile, SETTING_NAMES } from "./settings.ts";

const PREFIX = "HIBERNAUT_";

/** Read by others than the platform, which may have them in its environment all the same. */
const OF_OTHERS: readonly string[] = [
  // the command line and the set-up
  ...["HIBERNAUT_API_URL", "HIBERNAUT_API_TOKEN", "HIBERNAUT_APP", "HIBERNAUT_LINK_FOLDER"],
  // apps in machines, where a platform may run, too
  ...["HIBERNAUT_APP_NAME", "HIBERNAUT_IMAGE_REF", "HIBERNAUT_MACHINE_ID", "HIBERNAUT_MACHINE_VERSION"],
  ...["HIBERNAUT_PRIVATE_IP", "HIBERNAUT_VM_MEMORY_MB"],
  // tests and benches
  ...["HIBERNAUT_BENCH_TRACE", "HIBERNAUT_FUZZ_RUNS", "HIBERNAUT_LONG_TESTS", "HIBERNAUT_TORTURE_S"],
];

/** A sentence for each variable, and each name in `settings.json`, that begins as a setting does and is not known. */
export function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const { file, values } = readSettingsFile(environment);
  const known = new Set([...SETTING_NAMES, ...FORMER_SETTING_NAMES, ...OF_OTHERS]);
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
    near === undefined ? "docs/settings.md lists what there is." : `Did you mean ${PREFIX}${near.toUpperCase()}?`;
  return `${what} is no setting and has no effect. ${hint}`;
}
