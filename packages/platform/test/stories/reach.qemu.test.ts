/** A machine for each user: requests reach the right one by its hostname and through a router, and the others sleep. */
import { execFileSync } from "node:child_process";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { ask, type ProxiedAnswer, wakeOf } from "../helpers/proxied.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { openTempFolder, type TempFolder } from "../helpers/temp.ts";

/** Its machines are those of users; `place.app` is their router. */
const USERS = "users";
/** The last one is never asked for. */
const NAMES = ["anna", "bob", "carla", "never"];
const VISITED = NAMES.slice(0, -1);
const REQUESTS = 300;
/** At the same time. */
const VISITORS = 8;
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

/** Creates the router and the machines of users, and puts the latter to sleep. Returns their ids by name. */
async function boxes(): Promise<Map<string, string>> {
  const { client, app } = place;
  const guest = { memory_mb: 160 };
  const service = {
    ...{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: 2 },
    ...{ placement: "pinned" as const, machine_hostnames: true, replay_from: [app] },
  };
  await client.createApp(USERS);
  const router = await client.createMachine(app, {
    config: { image: SMALL_APP, guest, services: [{ internal_port: 8080 }] },
  });
  const made = await Promise.all(
    NAMES.map((name) => {
      const init = { cmd: ["--label", name, "--notes", "/tmp/notes"] };
      return client.createMachine(USERS, { name, config: { image: SMALL_APP, guest, init, services: [service] } });
    }),
  );
  await client.waitForMachine(app, router.id, { state: ["running"], timeout: START_LIMIT_S });
  for (const { id } of made) await client.waitForMachine(USERS, id, { state: ["suspended"], timeout: START_LIMIT_S });
  return new Map(made.map(({ name, id }) => [name, id]));
}

const stateOf = async (id: string) => (await place.client.getMachine(USERS, id)).state;

/** How a request can reach a machine. Each path is one that the small app answers with its label and its count. */
const WAYS: Record<string, (name: string, id: string) => Promise<ProxiedAnswer>> = {
  "the name in the hostname": (name) => at(`${name}.${USERS}.localhost`),
  "the id in the hostname": (_name, id) => at(`${id}.${USERS}.localhost`),
  "the port in the hostname": (name) => at(`8080--${name}.${USERS}.localhost.`),
  "a header": (name) => at(`${USERS}.localhost`, "/", { "Hibernaut-Machine": name }),
  "Fly's header": (_name, id) => at(`${USERS}.localhost`, "/", { "fly-force-instance-id": id }),
  "the router": (_name, id) => at(`${place.app}.localhost`, `/replay/app=${USERS};instance=${id};state=${id}`),
};

function at(host: string, path = "/", headers: Record<string, string> = {}): Promise<ProxiedAnswer> {
  return ask({ proxyUrl: place.proxyUrl, app: USERS, host }, path, { headers });
}

test("each way wakes the right one of four machines, and hundreds of requests reach no other", {
  // Each step has a limit of its own that only a fault reaches.
  timeout: 600_000,
}, async () => {
  const ids = await boxes();
  const id = (name: string) => ids.get(name) ?? "";

  const one = await at(`anna.${USERS}.localhost`);
  expect([one.text, wakeOf(one).kind]).toEqual(["anna 1", expect.stringMatching(/^(warm|resume)$/)]);
  expect(await Promise.all(["bob", "carla", "never"].map((name) => stateOf(id(name))))).toEqual(
    Array(3).fill("suspended"),
  );
  const replayed = await at(`${place.app}.localhost`, `/replay/app=${USERS};instance=bob`);
  expect([replayed.text, wakeOf(replayed).kind]).toEqual(["bob 1", expect.stringMatching(/^(warm|resume)$/)]);
  expect(replayed.headers).not.toHaveProperty("fly-replay");
  expect(await stateOf(id("carla"))).toBe("suspended");

  const counts = new Map([
    ["anna", 1],
    ["bob", 1],
    ["carla", 0],
  ]);
  const notes = new Map(VISITED.map((name) => [name, [] as string[]]));
  const ways = Object.entries(WAYS);
  const turns = Array.from({ length: REQUESTS }, (_, turn) => turn).values();
  const visitor = async () => {
    for (const turn of turns) {
      // Each machine in turn, and each way for all of them.
      const name = VISITED[turn % VISITED.length] ?? "";
      const [way, send] = ways[Math.floor(turn / VISITED.length) % ways.length] ?? [];
      if (turn % 10 === 9) {
        const path = `/replay/app=${USERS};instance=${name}`;
        const target = { proxyUrl: place.proxyUrl, app: place.app };
        const body = `${name} ${turn}`;
        expect((await ask(target, path, { method: "POST", body })).text, `POST ${path}`).toBe("kept");
        notes.get(name)?.push(body);
        continue;
      }
      const answer = await send?.(name, id(name));
      expect(answer?.text.split(" ")[0], `${way} of ${name}: ${answer?.status} ${answer?.text}`).toBe(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: VISITORS }, visitor));

  for (const name of VISITED) {
    const host = `${name}.${USERS}.localhost`;
    expect((await at(host)).text, "it counted what it answered").toBe(`${name} ${(counts.get(name) ?? 0) + 1}`);
    const kept = (await at(host, "/notes")).text.split("\n").filter((line) => line !== "");
    expect(kept.toSorted()).toEqual(notes.get(name)?.toSorted());
  }
  const never = await place.client.listMachineEvents(USERS, id("never"), { limit: 100 });
  expect(never.filter(({ details }) => details["by"] === "proxy").map(({ type }) => type)).toEqual(["suspend"]);
  expect(await stateOf(id("never"))).toBe("suspended");

  const missing = await at(`nobody.${USERS}.localhost`);
  expect([missing.status, JSON.parse(missing.text)]).toEqual([
    404,
    expect.objectContaining({ error: "unknown_machine" }),
  ]);
  const ghost = await at(`${place.app}.localhost`, "/replay/app=ghost");
  expect([ghost.status, JSON.parse(ghost.text)]).toEqual([
    502,
    expect.objectContaining({ error: "replay_unknown_app" }),
  ]);
  await place.client.destroyApp(USERS, { force: true });
});

test("plain HTTP is redirected to HTTPS, which serves the app with its own headers and tells browsers to stay", async () => {
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
