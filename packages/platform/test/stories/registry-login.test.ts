/** A private registry, as a user with an image there meets it: a real registry, a served platform, no machine. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { HibernautClient } from "@hibernaut/client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { makeLayout } from "../../../images/test/fixtures.ts";
import { LOGIN, type RealRegistry, startRegistry } from "../../../images/test/real-registry.ts";
import { Served } from "../helpers/served.ts";
import { useTempFolder } from "../helpers/temp.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");

const NOBODY_LISTENS = `127.0.0.1:${await freePort()}`;

const folder = useTempFolder("login");
let registry: RealRegistry;
let served: Served;
let client: HibernautClient;
/** The command line finds the platform by it. */
let dataDir: string;

beforeAll(async () => {
  registry = await startRegistry(folder.path, { login: true });
  await registry.push(await makeLayout(folder.path, "secret"), "me/secret:1");
  dataDir = join(folder.path, "data");
  served = new Served(dataDir, { HIBERNAUT_NETWORK: "user", HOME: folder.path });
  await served.start();
  ({ client } = served);
});
afterEach(async () => {
  for (const { host } of await client.listRegistryLogins()) await client.logOutOfRegistry(host);
});
afterAll(async () => {
  await served?.stop();
  await registry?.stop();
});

/** `hibernaut ...` with a standard input. */
async function hibernaut(args: string[], input: string): Promise<{ code: number; output: string }> {
  const env = { ...process.env, HIBERNAUT_DATA_DIR: dataDir };
  const child = execFile(process.execPath, [CLI, ...args], { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text: string) => (output += text));
  child.stdin?.end(input);
  const [code] = (await once(child, "close")) as [number];
  return { code, output };
}

test("login, pull, logout: with the command line, and refused afterwards", async () => {
  const image = `${registry.host}/me/secret:1`;
  await expect(client.pullImage(image)).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining(`hibernaut registry login ${registry.host}`),
  });
  const login = ["registry", "login", registry.host, "-u", LOGIN.username, "--password-stdin"];
  expect(await hibernaut(login, `${LOGIN.password}\n`)).toEqual({
    code: 0,
    output: `Logged in to ${registry.host} as ${LOGIN.username}.\n`,
  });
  expect(await client.pullImage(image)).toMatchObject({ ref: image });
  expect(await hibernaut(["registry", "logout", registry.host], "")).toMatchObject({ code: 0 });
  await expect(client.pullImage(image)).rejects.toMatchObject({ code: "not_found" });
});

test.each<[string, string | undefined, typeof LOGIN, object]>([
  [
    "a wrong password",
    undefined,
    { ...LOGIN, password: "wrong" },
    {
      code: "failed_precondition",
      message: expect.stringMatching(/does not accept the login of me: .*\. Check the name and the password/),
    },
  ],
  [
    "a registry that is down",
    NOBODY_LISTENS,
    LOGIN,
    {
      code: "unavailable",
      message: `The login for ${NOBODY_LISTENS} could not be checked: nothing listens at ${NOBODY_LISTENS}. Nothing was stored. Check the registry's name and port, and the network.`,
    },
  ],
  [
    // RFC 6761 keeps .invalid free for good.
    "a hostname that cannot be resolved",
    "registry.invalid",
    LOGIN,
    {
      code: "unavailable",
      message: expect.stringMatching(/the name registry\.invalid cannot be resolved \(E\w+\)\. Nothing was stored\./),
    },
  ],
])("%s is told, with what to check", async (_what, host, login, told) => {
  await expect(client.logInToRegistry(host ?? registry.host, login)).rejects.toMatchObject(told);
});
