/** What E2B's own tests need: a platform with the port of sandboxes over HTTPS, names for it, a key, and a base template. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { ROOT } from "../../../scripts/lib/node.mjs";
import { startOwnPlatform } from "../../../scripts/lib/own-platform.mjs";

/** No real name ends like this (RFC 6761). */
const DOMAIN = "sandboxes.test";
/** Their tests ask for a template of this name, and their programs for this much memory. */
const TEMPLATE = { name: "base", memoryMb: 512 };

/** Lets every name below the domain mean this host, in the process of the tests and nowhere else. */
const NAMES = `
import dns from "node:dns";
const lookup = dns.lookup;
const isOurs = (name) => name === "${DOMAIN}" || String(name).endsWith(".${DOMAIN}");
dns.lookup = (name, options, done) => {
  if (typeof options === "function") return dns.lookup(name, {}, options);
  if (!isOurs(name)) return lookup(name, options, done);
  const one = { address: "127.0.0.1", family: 4 };
  if (typeof options === "object" && options.all) done(null, [one]);
  else done(null, one.address, one.family);
};
`;

/**
 * Starts all of it. `stop` ends the platform and leaves the rest, for the control run.
 *
 * @param {string} folder For files of its own. @param {(line: string) => void} say
 */
export async function openRig(folder, say) {
  mkdirSync(folder, { recursive: true });
  const files = certificates(folder);
  const port = await freePort();
  const settings = {
    HIBERNAUT_SANDBOX_LISTEN: `127.0.0.1:${port}`,
    HIBERNAUT_SANDBOX_DOMAIN: `${DOMAIN}:${port}`,
    HIBERNAUT_SANDBOX_TLS_CERT: files.cert,
    HIBERNAUT_SANDBOX_TLS_KEY: files.key,
    HIBERNAUT_MEMORY_OVERCOMMIT: "0",
  };
  const platform = await startOwnPlatform(settings, say);
  const hibernaut = (/** @type {string[]} */ ...args) =>
    execFileSync(process.execPath, [join(ROOT, "packages/cli/bin/hibernaut.js"), ...args], {
      env: { ...platform.env, HIBERNAUT_API_TOKEN: platform.token, HIBERNAUT_API_URL: platform.apiUrl },
      stdio: ["ignore", "pipe", "inherit"],
      encoding: "utf8",
    }).trim();
  try {
    hibernaut("apps", "create", "suite");
    hibernaut("sandbox", "template", TEMPLATE.name, "--app", "suite", "--memory", `${TEMPLATE.memoryMb}mb`);
    const names = join(folder, "names.mjs");
    writeFileSync(names, NAMES);
    const { token: key } = JSON.parse(hibernaut("tokens", "create", "suite", "--e2b", "--app", "suite", "--json"));
    return {
      names,
      environment: {
        // Their tests mock the addresses that follow from the domain, so the API's is not named.
        E2B_DOMAIN: `${DOMAIN}:${port}`,
        E2B_API_KEY: key,
        NODE_EXTRA_CA_CERTS: files.authority,
      },
      stop: () => platform.close(),
    };
  } catch (error) {
    await platform.close();
    throw error;
  }
}

/** An authority, and a certificate of it for the domain and the names below it. @param {string} folder */
function certificates(folder) {
  const at = (/** @type {string} */ name) => join(folder, name);
  const openssl = (/** @type {string[]} */ ...args) =>
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=suite", "-keyout", at("ca.key"), "-out", at("ca.crt"));
  openssl("req", ...key, "-subj", `/CN=${DOMAIN}`, "-keyout", at("own.key"), "-out", at("own.csr"));
  writeFileSync(at("names.cnf"), `subjectAltName=DNS:${DOMAIN},DNS:*.${DOMAIN}\n`);
  const signed = ["-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "2"];
  openssl("x509", "-req", "-in", at("own.csr"), ...signed, "-extfile", at("names.cnf"), "-out", at("own.crt"));
  writeFileSync(at("chain.crt"), readFileSync(at("own.crt")));
  return { authority: at("ca.crt"), cert: at("chain.crt"), key: at("own.key") };
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}
