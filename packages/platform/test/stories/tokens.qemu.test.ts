/**
 * A CI job with a token that may deploy one app: the CLI, a real platform, a real machine.
 *
 * @module-tag again
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../../cli/test/real-cli.ts";
import { ask } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const place = Place.forTests({ HIBERNAUT_QUOTA_MACHINES: "2" });
let folder: string;
beforeAll(async () => {
  folder = join(place.dataDir, "cafe");
  await mkdir(folder);
  const service = "[http_service]\ninternal_port = 8080\nauto_start_machines = true\n";
  await writeFile(join(folder, "hibernaut.toml"), `app = "cafe"\n[build]\nimage = "${SMALL_APP}"\n${service}`);
});
afterAll(async () => {
  for (const app of ["cafe", "bank"]) await place.client.destroyApp(app, { force: true });
});

const admin = (...args: string[]) => runCli(place, args);
const withToken = (token: string, ...args: string[]) => {
  const more = { HIBERNAUT_API_URL: place.client.apiUrl, HIBERNAUT_API_TOKEN: token, HIBERNAUT_APP: "" };
  return runCli(place, args, { cwd: folder, more });
};

test("a CI token deploys one app and can do no more", async () => {
  for (const app of ["cafe", "bank"]) expect((await admin("apps", "create", app)).code).toBe(0);
  expect((await admin("secrets", "set", "KEY=the-banks-secret", "--app", "bank")).code).toBe(0);
  const made = await admin("tokens", "create", "ci", "--scope", "deploy", "--app", "cafe", "--expires", "90d");
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^hib_[\w-]{43}\n$/) });
  const ci = (...args: string[]) => withToken(made.out.trim(), ...args);

  // The image is a file here. The token may not make the platform read files, so the CLI uploads it.
  const deployed = await ci("deploy");
  expect(deployed, deployed.err).toMatchObject({ code: 0, out: expect.stringContaining("Deployed release 1 of cafe") });
  expect(deployed.err).toContain("lets this token use no file on its host");
  expect((await ask({ proxyUrl: place.proxyUrl, app: "cafe" })).status).toBe(200);
  expect((await ci("secrets", "set", "A=b", "--app", "cafe")).code).toBe(0);

  const apps = await ci("apps", "list", "-q");
  expect(apps.out.trim()).toBe("cafe");
  for (const [words, sentence] of [
    ["machine list --app bank", "There is no app bank for this token"],
    ["secrets list --app bank", "There is no app bank for this token"],
    ["secrets unset KEY --app bank", "There is no app bank for this token"],
    ["machine exec -- id", "needs a token with the scope `exec`"],
    ["apps destroy cafe", "needs a token with the scope `admin`"],
    ["apps update cafe --max-machines 0", "limited to apps"],
    ["tokens create more", "limited to apps"],
    ["drain", "limited to apps"],
    ["backup create x.tar", "limited to apps"],
    ["audit", "limited to apps"],
    ["machine run oci:/etc --app cafe --no-upload", "which is on the platform's host"],
  ] as const) {
    const refused = await ci(...words.split(" "));
    expect(refused.code, words).toBe(1);
    expect(refused.err, words).toContain(sentence);
    expect(refused.err, words).not.toMatch(/\n\s+at /);
  }
  const [machine] = await place.client.listMachines("cafe");
  const image = machine?.config.image ?? "";
  expect((await ci("machine", "run", image, "--app", "cafe")).code).toBe(0);
  const third = await ci("machine", "run", image, "--app", "cafe");
  expect(third.err).toContain("The quota of app cafe for machines is 2: it has 2, and this needs 1 more");
});

test("the token is rotated without a gap, and the audit log tells all of it, also after kill -9", async () => {
  const [old] = (await place.client.listTokens()).filter(({ name }) => name === "ci");
  expect(old).toMatchObject({ scopes: ["deploy"], apps: ["cafe"], last_used_at: expect.any(String) });
  const rotated = await admin("tokens", "rotate", old?.id ?? "", "--keep", "1h");
  expect(rotated.err).toContain(`in the place of ${old?.id}`);
  expect((await withToken(rotated.out.trim(), "machine", "list")).code).toBe(0);
  // What was answered is in the log, also if the platform has no time for a last word.
  await place.served.kill();
  await place.served.start();
  expect((await withToken(rotated.out.trim(), "machine", "list")).code).toBe(0);
  const listed = await admin("tokens", "list");
  expect(listed.out).toMatch(
    /ci +deploy +cafe .*rotated, valid for 60 min\n.*ci +deploy +cafe +\d+ s ago +valid for 90 d/,
  );

  const log = await admin("audit", "--token", "ci");
  expect(log.out).toContain("POST /v1/apps/cafe/releases");
  expect(log.out).toMatch(/refused 404 +ci \(\w+\) from 127\.0\.0\.1 DELETE \/v1\/apps\/bank\/secrets\/KEY/);
  expect(log.out).toMatch(/refused 403 +ci .* POST \/v1\/tokens/);
  const all = await admin("audit", "--json", "--limit", "10000");
  expect(all.out).not.toContain("the-banks-secret");
});
