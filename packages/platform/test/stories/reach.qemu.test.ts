/**
 * A machine for each user: requests reach the right one by its hostname and through a router, and the others sleep.
 *
 * @module-tag again
 */
import { execFileSync } from "node:child_process";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { ask, type ProxiedAnswer } from "../helpers/proxied.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { openTempFolder, type TempFolder } from "../helpers/temp.ts";
import { USERS, UserBoxes } from "../helpers/user-boxes.ts";

/** The last one is never asked for. */
const NAMES = ["anna", "bob", "carla", "never"];
const VISITED = NAMES.slice(0, -1);
const REQUESTS = 300;
/** Only a fault reaches it: five cold starts on a busy host. */
const START_LIMIT_S = 240;

let place: Place;
let certificates: TempFolder;
beforeAll(async () => {
  certificates = await openTempFolder("certificates");
  signForAnyName(certificates.path);
  const tls = {
    HIBERNAUT_PROXY_TLS_LISTEN: "127.0.0.1:0",
    HIBERNAUT_PROXY_TLS_FOLDER: certificates.path,
    HIBERNAUT_PROXY_HSTS: "60",
  };
  place = await Place.open({ ...PATIENT, ...WARM, ...tls, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
});
afterAll(async () => {
  try {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  } finally {
    await certificates.dispose();
  }
});

test("each way wakes the right one of four machines, and hundreds of requests reach no other", {
  // Each step has a limit of its own that only a fault reaches.
  timeout: 600_000,
}, async () => {
  const boxes = await UserBoxes.create(place, NAMES);
  await boxes.wake("anna", "hostname");
  expect(await boxes.awake()).toEqual(["anna"]);
  await boxes.wake("bob", "replay");
  expect(await boxes.awake()).not.toContain("carla");

  await boxes.visit(VISITED, REQUESTS);
  for (const name of VISITED) await boxes.check(name);
  expect(await boxes.wakes("never")).toBe(0);
  expect(await boxes.awake()).not.toContain("never");

  const missing = await boxes.at(`nobody.${USERS}.localhost`);
  expect([missing.status, JSON.parse(missing.text)]).toEqual([
    404,
    expect.objectContaining({ error: "unknown_machine" }),
  ]);
  const ghost = await boxes.at(`${place.app}.localhost`, "/replay/app=ghost");
  expect([ghost.status, JSON.parse(ghost.text)]).toEqual([
    502,
    expect.objectContaining({ error: "replay_unknown_app" }),
  ]);
  await place.client.destroyApp(USERS, { force: true });
});

test("plain HTTP is redirected to HTTPS, which serves the app with its own headers and tells browsers to stay", {
  tags: "again",
}, async () => {
  const headers = { "X-Frame-Options": "DENY" };
  const service = { internal_port: 8080, force_https: true, http_options: { response: { headers } } };
  await place.client.createApp("safe");
  const { id } = await place.client.createMachine("safe", { config: { image: SMALL_APP, services: [service] } });
  await place.client.waitForMachine("safe", id, { state: ["running"], timeout: START_LIMIT_S });

  const redirected = await ask({ proxyUrl: place.proxyUrl, app: "safe" }, "/health?a=b", { method: "POST" });
  const { location } = redirected.headers;
  expect([redirected.status, location]).toEqual([
    308,
    expect.stringMatching(/^https:\/\/safe\.localhost:\d+\/health\?a=b$/),
  ]);
  const challenge = await ask({ proxyUrl: place.proxyUrl, app: "safe" }, "/.well-known/acme-challenge/x");
  expect(challenge.status).toBe(200);
  const answer = await securely(new URL("/health", String(location)));
  expect(answer).toMatchObject({ status: 200, text: "fine", headers: { "x-frame-options": "DENY" } });
  expect(answer.headers).toHaveProperty("strict-transport-security", "max-age=60");
  await place.client.destroyApp("safe", { force: true });
});

/** Writes a certificate for every name, which signs itself. */
function signForAnyName(folder: string): void {
  const files = ["-keyout", join(folder, "default.key"), "-out", join(folder, "default.crt")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
  execFileSync("openssl", ["req", "-x509", ...curve, "-nodes", "-days", "2", "-subj", "/CN=test", ...files], {
    stdio: "ignore",
  });
}

/** One request over TLS, to whatever certificate there is. */
function securely({ hostname, port, pathname }: URL): Promise<ProxiedAnswer> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", servername: hostname, headers: { host: `${hostname}:${port}` }, agent: false };
    const sent = httpsRequest({ ...options, port, path: pathname, rejectUnauthorized: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.on("error", reject).end();
  });
}
