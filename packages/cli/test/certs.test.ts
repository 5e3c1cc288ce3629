/**
 * `hibernaut certs`: what people read, what scripts get, and how a failed order looks.
 *
 * @module-tag again
 */
import { AuthorityFault } from "@hibernaut/certs";
import { expect, test } from "vitest";
import { useCli } from "./helpers.ts";

const NAME = "www.example.com";
const cli = useCli();

test("a hostname is added with its certificate, which is listed and removed", async () => {
  const { stdout, code } = await cli.hibernaut(`hostnames add ${NAME} --tls`);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^App shop answers for www\.example\.com\.\nwww\.example\.com has a certificate until \d{4}-.*, and its renewal is due \d{4}-.*\.\n$/,
  );
  expect((await cli.json(`hostnames add ${NAME} --tls`)).document).toMatchObject({
    hostname: NAME,
    certificate: { hostname: NAME, status: "valid" },
  });
  const list = await cli.hibernaut("certs list -o wide");
  expect(list.stdout).toMatch(/^HOSTNAME +STATUS +EXPIRES +RENEWAL +ISSUER +CHALLENGE +FAILURE\n/);
  expect(list.stdout).toMatch(/^www\.example\.com +valid .* +Fake authority +http-01 +-$/m);
  expect((await cli.hibernaut("certs list -q")).stdout).toBe(`${NAME}\n`);
  const removed = await cli.hibernaut(`certs rm ${NAME}`);
  expect(removed.stdout).toBe(`Removed the certificate for ${NAME}.\n`);
  expect((await cli.hibernaut("certs list")).stdout).toBe("App shop has no certificates.\n");

  await cli.hibernaut(`certs add ${NAME}`);
  const revoked = await cli.hibernaut(`certs rm ${NAME} --revoke`);
  expect(revoked.stdout).toBe(`Revoked and removed the certificate for ${NAME}.\n`);
  expect(cli.server.authority.revoked).toEqual([expect.stringContaining("BEGIN CERTIFICATE")]);
});

test("an order that fails says why, when it is repeated, and what to do", async () => {
  await cli.hibernaut("hostnames add bad.example.com");
  cli.server.authority.fault = new AuthorityFault("refused", "The authority could not verify bad.example.com: timeout");
  const failed = await cli.hibernaut("certs add bad.example.com");
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(
    /There is no new certificate for bad\.example\.com: The authority could not verify bad\.example\.com: timeout\. The next attempt is due .*See what is missing: hibernaut certs check bad\.example\.com --app shop/,
  );
  expect(failed.stderr).not.toMatch(/^ +at /m);
  expect((await cli.hibernaut("certs list")).stdout).toMatch(/^bad\.example\.com +failed +- +failed once$/m);
  const { document } = await cli.json("certs add bad.example.com --no-wait");
  expect(document).toMatchObject({ hostname: "bad.example.com", challenge: "http-01" });
  cli.server.authority.fault = undefined;
});

test.each([
  ["certs add none.example.com", /Add it first: hibernaut hostnames add none\.example\.com --app shop/],
  ["certs add shop.localhost", /a name of this host only/],
  ["certs add *.example.com", /HIBERNAUT_ACME_DNS_HOOK/],
  ["certs remove none.example.com", /App shop has no certificate for none\.example\.com/],
])("%s is refused with advice", async (words, advice) => {
  await cli.hibernaut(`hostnames add ${NAME}`);
  const { code, stderr } = await cli.hibernaut(words);
  expect(code).toBe(1);
  expect(stderr).toMatch(advice);
  expect(stderr).not.toMatch(/^ +at /m);
});
