/** What `npm run up` invites people to do: put the tour's machine to sleep, and wake it with a request. */
import { realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "./node.mjs";
import { SEARCH } from "./tour.mjs";

/**
 * The last lines. Followed in their order they work, and the last of them wakes the machine.
 *
 * @param {import("./tour.mjs").TourResult} result
 * @param {import("./platform.mjs").Platform} platform
 * @param {NodeJS.ProcessEnv} [environment]
 */
export function invitation({ app, machine_id: id, address }, { apiUrl, proxyUrl }, environment = process.env) {
  const linked = isLinked(environment);
  const hibernaut = linked ? "hibernaut" : "npx hibernaut";
  // Without the platform's own proxy a request goes to the machine itself, and does not wake it.
  const request = proxyUrl ? `curl -i "${appUrl(app, proxyUrl)}${SEARCH}"` : `curl "${address}${SEARCH}"`;
  const lines = [
    // Anywhere else npx would ask the npm registry for a package of that name.
    ...(linked ? [] : [`cd ${ROOT.replace(/\/$/, "")}`]),
    `${hibernaut} machine suspend ${id} --app ${app}`,
    `${hibernaut} machine list --app ${app}`,
    ...(proxyUrl ? [] : [`${hibernaut} machine start ${id} --app ${app}`]),
    request,
  ];
  return [
    `The platform answers at ${apiUrl}. In another terminal, put the machine to sleep${proxyUrl ? ", and wake it with a request" : ""}:`,
    ...lines.map((line) => `  ${line}`),
    ...(proxyUrl
      ? ["`Hibernaut-Wake: resume` in the reply says that the request woke it, and in how many milliseconds."]
      : []),
    "Ctrl-C ends the tour's machine and the platform.",
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
 * Whether a shell finds our command line as `hibernaut`. npm puts `node_modules/.bin` in front of the PATH for its
 * scripts alone: that does not count.
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
