/** What `npm run up` invites you to do: suspend the tour's machine, and wake it with a request. */
import { realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "./node.mjs";
import { SEARCH } from "./tour.mjs";

/**
 * Returns the last lines of the tour. Run in order, the commands work, and the last one wakes the machine.
 *
 * @param {import("./tour.mjs").TourResult} result
 * @param {import("./platform.mjs").Platform} platform
 * @param {NodeJS.ProcessEnv} [environment]
 */
export function invitation({ app, machine_id: id, address }, { apiUrl, proxyUrl }, environment = process.env) {
  const linked = isLinked(environment);
  const hibernaut = linked ? "hibernaut" : "npx hibernaut";
  // Without the platform's proxy, a request goes straight to the machine and does not wake it.
  const request = proxyUrl ? `curl -i "${appUrl(app, proxyUrl)}${SEARCH}"` : `curl "${address}${SEARCH}"`;
  const lines = [
    // In any other directory, npx would look for a package of that name in the npm registry.
    ...(linked ? [] : [`cd ${ROOT.replace(/\/$/, "")}`]),
    `${hibernaut} machine suspend ${id} --app ${app}`,
    `${hibernaut} machine list --app ${app}`,
    ...(proxyUrl ? [] : [`${hibernaut} machine start ${id} --app ${app}`]),
    request,
  ];
  return [
    `The platform is running at ${apiUrl}. In another terminal, suspend the machine${proxyUrl ? " and wake it with a request" : ""}:`,
    ...lines.map((line) => `  ${line}`),
    ...(proxyUrl
      ? ["`Hibernaut-Wake: warm` in the reply says that the request woke the machine, and how long that took in ms."]
      : []),
    "Press Ctrl-C to end the tour's machine and the platform.",
    "",
  ].join("\n");
}

/**
 * @param {string} app
 * @param {string} proxyUrl
 */
function appUrl(app, proxyUrl) {
  return `http://${app}.localhost:${new URL(proxyUrl).port || 80}`;
}

/**
 * Whether a shell finds our CLI as `hibernaut`. npm puts `node_modules/.bin` at the front of the PATH for its own
 * scripts only, so that does not count.
 *
 * @param {NodeJS.ProcessEnv} environment
 */
function isLinked({ PATH = "" }) {
  const folders = PATH.split(delimiter).filter((folder) => folder !== "" && !folder.includes("node_modules"));
  const found = folders.map((folder) => realPath(join(folder, "hibernaut"))).find((path) => path !== undefined);
  return found?.startsWith(`${realPath(ROOT)}/`) ?? false;
}

/** @param {string} path */
function realPath(path) {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
