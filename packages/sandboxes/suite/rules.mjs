/** What E2B's own tests say about us. Pure. */

/** How much has to pass of what counts and needs no internet. */
export const LEAST_PASSED = 0.95;

/**
 * @typedef {{ name: string, state: "passed" | "failed" | "skipped", why: string }} Ran A test by its file and title.
 * @typedef {{ test: string, why: string, internet?: boolean }} Exception `test`: a whole name, or the beginning of several.
 *   `internet`: it needs the internet, or E2B's own cloud, so that it says nothing about us where it fails.
 * @typedef {{ area: string, counted: number, passed: number, excepted: number }} Row
 * @typedef {{ rows: Row[], counted: number, passed: number, remote: number, excepted: { name: string, why: string }[], failed: Ran[],
 *   needless: string[], isGood: boolean }} Verdict
 */

/**
 * Reads the report of Vitest's JSON reporter.
 *
 * @param {string} text @param {string} root Of the tests.
 * @returns {Ran[]}
 */
export function readReport(text, root) {
  const { testResults } = JSON.parse(text);
  return testResults.flatMap((/** @type {any} */ file) => {
    const path = file.name.slice(root.length + 1);
    const [, group = "tests"] = path.split("/");
    const results = file.assertionResults.map((/** @type {any} */ { fullName, status, failureMessages }) => ({
      name: `${path} > ${fullName}`,
      state: status === "passed" || status === "failed" ? status : "skipped",
      why: String(failureMessages?.[0] ?? "").split("\n")[0],
    }));
    // A file that cannot be loaded has no tests, and is not silent about it.
    if (results.length > 0 || file.status !== "failed") return results;
    return [
      { name: `${path} > (${group}: the file itself)`, state: "failed", why: String(file.message).split("\n")[0] },
    ];
  });
}

/**
 * Reads the report of pytest's option `--junitxml`, with the family `xunit1`, which names files. A test of which more than one
 * part is reported, such as what follows it, has failed if one of them has.
 *
 * @param {string} text
 * @returns {Ran[]}
 */
export function readJunit(text) {
  /** @type {Map<string, Ran>} */
  const found = new Map();
  for (const [, head = "", , body = ""] of text.matchAll(/<testcase ([^>]*?)(\/>|>([^]*?)<\/testcase>)/g)) {
    const attribute = (/** @type {string} */ name) =>
      unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(head)?.[1] ?? "");
    const [, outcome = "", why = ""] = /<(failure|error|skipped)\b[^>]*?message="([^"]*)"/.exec(body) ?? [];
    const state = outcome === "" ? "passed" : outcome === "skipped" ? "skipped" : "failed";
    const name = `${attribute("file")} > ${attribute("name")}`;
    if (found.get(name)?.state === "failed") continue;
    found.set(name, { name, state, why: unescaped(why).split("\n")[0] ?? "" });
  }
  return [...found.values()];
}

/** @param {string} text Of an attribute in XML. */
function unescaped(text) {
  const signs = /** @type {Record<string, string>} */ ({ lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" });
  return text.replaceAll(/&(?:#(\d+)|(\w+));/g, (all, code, name) =>
    code === undefined ? (signs[name] ?? all) : String.fromCodePoint(Number(code)),
  );
}

/**
 * What passes without a platform needs none, and does not count.
 *
 * @param {readonly Ran[]} withPlatform @param {readonly Ran[]} without @param {readonly Exception[]} exceptions
 * @returns {Verdict}
 */
export function judge(withPlatform, without, exceptions) {
  const needless = new Set(without.filter(({ state }) => state === "passed").map(({ name }) => name));
  const live = withPlatform.filter(({ name, state }) => state !== "skipped" && !needless.has(name));
  const exceptionOf = (/** @type {string} */ name) => exceptions.find(({ test }) => name.startsWith(test));
  const failures = live.filter(({ state }) => state === "failed");
  const failed = failures.filter(({ name }) => exceptionOf(name) === undefined);
  const excepted = failures.flatMap(({ name }) => {
    const why = exceptionOf(name)?.why;
    return why === undefined ? [] : [{ name, why }];
  });
  const passed = live.length - failures.length;
  const remote = failures.filter(({ name }) => exceptionOf(name)?.internet === true).length;
  const unused = exceptions.filter(({ test }) => !failures.some(({ name }) => name.startsWith(test)));
  return {
    rows: rowsOf(live, exceptionOf),
    ...{ counted: live.length, passed, remote, excepted, failed },
    needless: unused.map(({ test }) => test),
    isGood: failed.length === 0 && passed >= (live.length - remote) * LEAST_PASSED,
  };
}

/** @param {readonly Ran[]} live @param {(name: string) => Exception | undefined} exceptionOf @returns {Row[]} */
function rowsOf(live, exceptionOf) {
  const areas = [...new Set(live.map(({ name }) => areaOf(name)))].sort();
  return areas.map((area) => {
    const own = live.filter(({ name }) => areaOf(name) === area);
    const failures = own.filter(({ state }) => state === "failed");
    return {
      area,
      counted: own.length,
      passed: own.length - failures.length,
      excepted: failures.filter(({ name }) => exceptionOf(name) !== undefined).length,
    };
  });
}

/** `tests/sandbox/files/read.test.ts > …` belongs to `sandbox/files`. @param {string} name */
function areaOf(name) {
  const parts = (name.split(" > ")[0] ?? "").replace(/^tests\//, "").split("/");
  return parts.length === 1 ? "others" : parts.slice(0, -1).join("/");
}

/**
 * @param {Verdict} verdict
 * @param {{ title: string, sdk: string, version: string, command: string, date: string }} about `sdk`: whose tests they are.
 */
export function page({ rows, counted, passed, remote, excepted, failed }, { title, sdk, version, command, date }) {
  const here = counted - remote;
  const percent = here === 0 ? 0 : Math.floor((passed / here) * 1000) / 10;
  return `# ${title}

Made by \`${command}\` on ${date}, with version ${version} of the ${sdk} SDK and its tests, unchanged
([how](../packages/sandboxes/suite/README.md)). Counted are tests that cannot pass without a platform: ${counted}. ${remote} of them need the
internet, and failed without it. **Of the other ${here}, ${passed} pass (${percent} %).**

| tests | counted | pass | expected to fail | fail |
|---|---|---|---|---|
${rows.map((row) => `| ${row.area} | ${row.counted} | ${row.passed} | ${row.excepted} | ${row.counted - row.passed - row.excepted} |`).join("\n")}

## Expected to fail

${excepted.length === 0 ? "None." : excepted.map(({ name, why }) => `- \`${name}\`: ${why}`).join("\n")}
${failed.length === 0 ? "" : `\n## Fail\n\n${failed.map(({ name }) => `- \`${name}\``).join("\n")}\n`}`;
}
