/** An ACME server that is busy, silent or not what it seems. What a healthy one does is in pebble.test.ts. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { AccountFile } from "../src/account.ts";
import { AcmeAuthority } from "../src/acme.ts";
import type { Order } from "../src/contract.ts";

const ORDER: Order = { name: "www.example.com", challenge: "http-01", prove: async () => async () => {} };

/** An authority behind a server of the test, with an account that was agreed to. */
async function authorityAt(listener: RequestListener, { trusted = true } = {}): Promise<AcmeAuthority> {
  const folder = await tempFolder("acme");
  const [crt, key] = [join(folder, "server.crt"), join(folder, "server.key")];
  const names = ["-subj", "/CN=acme", "-addext", "subjectAltName=IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...names, "-keyout", key, "-out", crt], { stdio: "ignore" });
  const server = createServer({ cert: await readFile(crt), key: await readFile(key) }, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const directory = `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`;
  const account = new AccountFile(folder, directory);
  await account.make(undefined);
  const authority = new AcmeAuthority({ directory, email: undefined, caFile: trusted ? crt : undefined, account });
  onTestFinished(async () => {
    authority.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return authority;
}

const never = () => new AbortController().signal;

test("Retry-After of a busy authority reaches the one who asked, after one request", async () => {
  let requests = 0;
  const authority = await authorityAt((_request, response) => {
    requests += 1;
    response.writeHead(503, { "retry-after": "7200" }).end("busy");
  });
  const fault = { name: "AuthorityFault", kind: "limited", retryAfterMs: 7_200_000 };
  await expect(authority.issue(ORDER, never())).rejects.toMatchObject(fault);
  await expect(authority.describe(never())).rejects.toMatchObject(fault);
  expect(requests).toBe(2);
});

test("an abort ends the wait for a silent authority", async () => {
  const asked = Promise.withResolvers<void>();
  const authority = await authorityAt(() => asked.resolve());
  const abort = new AbortController();
  const order = authority.issue(ORDER, abort.signal);
  await asked.promise;
  abort.abort(new Error("enough"));
  await expect(order).rejects.toThrow("enough");
});

test("a server that does not speak ACME, or that nobody vouches for, is a fault", async () => {
  const other = await authorityAt((_request, response) => void response.end("<html>hello</html>"));
  await expect(other.issue(ORDER, never())).rejects.toMatchObject({ name: "AuthorityFault" });
  await expect(other.describe(never())).rejects.toThrow(/is not the directory of an ACME server/);
  const stranger = await authorityAt((_request, response) => void response.end("{}"), { trusted: false });
  await expect(stranger.describe(never())).rejects.toMatchObject({
    kind: "unreachable",
    message: expect.stringContaining("self-signed certificate"),
  });
});

test("an address where nobody listens is a fault that names it", async () => {
  const folder = await tempFolder("acme");
  const directory = `https://127.0.0.1:${await freePort()}/dir`;
  const account = new AccountFile(folder, directory);
  const authority = new AcmeAuthority({ directory, email: undefined, caFile: undefined, account });
  await expect(authority.describe(never())).rejects.toMatchObject({
    kind: "unreachable",
    message: expect.stringContaining("ECONNREFUSED"),
  });
  authority.close();
});

test("a root certificate that cannot be read is told at the start", async () => {
  const folder = await tempFolder("acme");
  const account = new AccountFile(folder, "https://x.test/");
  const open = () =>
    new AcmeAuthority({ directory: "https://x.test/", email: undefined, caFile: join(folder, "none"), account });
  expect(open).toThrow(/HIBERNAUT_ACME_CA_FILE, .*none, cannot be read/);
});

test("an account's key is made once, for its owner alone, and a damaged file is not replaced", async () => {
  const folder = await tempFolder("acme");
  const account = new AccountFile(folder, "https://x.test/");
  expect(await account.read()).toBeUndefined();
  await Promise.all([account.make("https://x.test/terms"), account.make("https://x.test/terms")]);
  const made = await account.read();
  expect(made).toMatchObject({ terms: "https://x.test/terms", url: null, key: expect.stringContaining("PRIVATE KEY") });
  await account.make("https://x.test/other");
  await account.setUrl("https://x.test/account/1");
  expect(await account.read()).toEqual({ ...made, url: "https://x.test/account/1" });
  const [file = ""] = await readdir(folder);
  expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
  await writeFile(join(folder, file), '{"key": "half');
  await expect(account.read()).rejects.toMatchObject({ code: "failed_precondition", message: /is not valid JSON/ });
  await expect(account.read()).rejects.not.toThrow(/half/);
});
