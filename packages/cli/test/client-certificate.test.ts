/**
 * The CLI and a platform that asks clients for a certificate, over real TLS.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { OLD_NODES, oldNode } from "../../../scripts/lib/test-nodes.mjs";
import { type Authority, makeAuthority } from "./authority.ts";
import { PROGRAM, startCli, type TestCli } from "./helpers.ts";
import { writeTinyLayout } from "./tiny-layout.ts";

interface Secured {
  cli: TestCli;
  authority: Authority;
  ann: { cert: string; key: string };
  /** The variables of someone whom the platform knows. */
  env: Record<string, string>;
}

async function secured(): Promise<Secured> {
  const authority = await makeAuthority();
  const [api, ann] = [authority.sign("api"), authority.sign("ann")];
  const cli = await startCli({ tls: { ...api, clientCa: authority.ca } });
  onTestFinished(() => cli.close());
  const env = variables(authority.ca, ann);
  return { cli, authority, ann, env };
}

function variables(ca: string, { cert, key }: { cert: string; key: string }): Record<string, string> {
  return { HIBERNAUT_API_CA: ca, HIBERNAUT_API_CLIENT_CERT: cert, HIBERNAUT_API_CLIENT_KEY: key };
}

test("with its certificate, the CLI does over TLS all that it does without", async () => {
  const { cli, env } = await secured();
  const good = async (words: string, input?: string) => {
    const { code, stdout, stderr } = await cli.hibernaut(words, env, input);
    expect(code, `${words}: ${stderr}`).toBe(0);
    return stdout;
  };
  expect(await good("apps list")).toMatch(/^shop /m);
  const { id } = JSON.parse(await good("machine run me/app:1 --port 8080 --json")) as { id: string };
  expect(await good(`machine exec ${id} -- cat`, "over a WebSocket")).toBe("over a WebSocket");
  // The fake guest says back what it is sent.
  expect(await good(`machine cp - ${id}:/tmp`, "2 7\n")).toMatch(/^Copied 2 entries/);
  expect(await good("events")).toContain("machine.running");
  const forward = cli.begin(`machine forward ${id} 0:80 --json`, env);
  const line = await new Promise((resolve) => forward.child.stdout.once("data", resolve));
  expect(String(line)).toContain('"port":80');
  forward.child.kill("SIGINT");
  expect((await forward.ended).code).toBe(0);
  const { code, stderr } = await cli.hibernaut("machine exec none -- id", env);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("has no machine none") });
});

test("an image is uploaded, and an upload that is refused says why", async () => {
  const { cli, env, authority } = await secured();
  await writeTinyLayout(join(authority.folder, "tiny"));
  const pushed = await cli.hibernaut(`images push oci:${authority.folder}/tiny`, env);
  expect(pushed.stdout, pushed.stderr).toMatch(/^upload:tiny@sha256:/);
  const refused = await cli.hibernaut(`images push oci:${authority.folder}/tiny`, {
    ...env,
    HIBERNAUT_API_TOKEN: "hib_wrong",
  });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/token/i);
});

test("what is wrong with a certificate is said before anything is sent", async () => {
  const { cli, authority, ann, env } = await secured();
  const failure = async (more: Record<string, string>) => {
    const { code, stdout, stderr } = await cli.hibernaut("apps list", { ...env, ...more });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    return stderr;
  };
  const at = (name: string) => join(authority.folder, name);
  expect(await failure({ HIBERNAUT_API_CLIENT_CERT: at("nobody.crt") })).toBe(
    `Error: HIBERNAUT_API_CLIENT_CERT names ${at("nobody.crt")}, which cannot be read (ENOENT).\n`,
  );
  expect(await failure({ HIBERNAUT_API_CLIENT_KEY: "" })).toMatch(
    /CLIENT_CERT is set, and HIBERNAUT_API_CLIENT_KEY is not/,
  );
  expect(await failure({ HIBERNAUT_API_CLIENT_CERT: "" })).toMatch(
    /CLIENT_KEY is set, and HIBERNAUT_API_CLIENT_CERT is not/,
  );
  expect(await failure({ HIBERNAUT_API_CLIENT_KEY: at("api.key") })).toContain(
    `The key in ${at("api.key")} does not belong to the certificate in ${ann.cert}.`,
  );
  expect(await failure({ HIBERNAUT_API_CLIENT_CERT: ann.key })).toMatch(/which is not a certificate in PEM: /);
  expect(await failure({ HIBERNAUT_API_CLIENT_KEY: ann.cert })).toMatch(/which is not a private key in PEM: /);
  authority.openssl("pkey", "-in", "ann.key", "-aes256", "-passout", "pass:x", "-out", "locked.key");
  expect(await failure({ HIBERNAUT_API_CLIENT_KEY: at("locked.key") })).toMatch(/which has a passphrase/);
  const { cert, key } = authority.sign("late", { days: -1 });
  expect(await failure(variables(authority.ca, { cert, key }))).toMatch(/late\.crt expired on \d{4}-\d\d-\d\d\./);
});

test("a platform that gets no certificate, or another authority's, is told from one that is down", async () => {
  const { cli, authority, env } = await secured();
  const trusted = { HIBERNAUT_API_CA: authority.ca };
  for (const words of ["apps list", "machine exec any -- id", "machine cp any:/etc ."]) {
    const none = await cli.hibernaut(words, trusted);
    expect(none.stderr).toMatch(/asks clients for a certificate.*set HIBERNAUT_API_CLIENT_CERT and /i);
    const stranger = (await makeAuthority()).sign("ann");
    const refused = await cli.hibernaut(words, variables(authority.ca, stranger));
    expect(refused.stderr).toMatch(/without an answer \(\w+\), as it does with a client certificate that it does/);
    expect(none.code + refused.code).toBe(2);
  }
  await cli.server.close();
  expect((await cli.hibernaut("apps list", env)).stderr).toContain("does not answer");
});

test.each(OLD_NODES)("started with Node %s, the CLI shows its certificate as well", async (major) => {
  const { cli, env } = await secured();
  const { id } = (await cli.json("machine run me/app:1 --port 8080", env)).document as { id: string };
  const { url, token } = cli.server;
  const all = { PATH: process.env.PATH, HIBERNAUT_API_URL: url, HIBERNAUT_API_TOKEN: token, HIBERNAUT_APP: "shop" };
  const ended = await new Promise((resolve) => {
    const options = { env: { ...all, ...env } };
    const child = execFile(oldNode(major), [PROGRAM, "machine", "exec", id, "--", "cat"], options, (_error, out, err) =>
      resolve({ out, err }),
    );
    child.stdin?.end("through and back");
  });
  expect(ended).toEqual({ out: "through and back", err: "" });
});
