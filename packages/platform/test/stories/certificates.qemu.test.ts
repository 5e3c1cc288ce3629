/**
 * HTTPS by itself: a hostname gets a certificate from an authority, and a request over HTTPS wakes its machine.
 *
 * @module-tag again
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { startDns } from "../../../certs/test/dns-server.ts";
import { startPebble } from "../../../certs/test/pebble.ts";
import { runCli } from "../../../cli/test/real-cli.ts";
import { request } from "../helpers/http.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const NAME = "www.example.com";

test("certs add gets a certificate, and HTTPS wakes the machine", async () => {
  const [httpPort, tlsPort] = [await freePort(), await freePort()];
  const dns = await startDns();
  const pebble = await startPebble({ dns: dns.address, httpPort, tlsPort });
  const place = await Place.open({
    HIBERNAUT_PROXY_LISTEN: `127.0.0.1:${httpPort}`,
    HIBERNAUT_PROXY_TLS_LISTEN: `127.0.0.1:${tlsPort}`,
    HIBERNAUT_ACME_DIRECTORY: pebble.directory,
    HIBERNAUT_ACME_CA_FILE: pebble.caFile,
  });
  onTestFinished(async () => expect(await place.close()).toEqual(NOTHING_LEFT));
  const hibernaut = (...args: string[]) => runCli(place, args);

  const { machine_id: id } = await place.machine({ services: [{ internal_port: 8080, autostop: "suspend" }] });
  const terms = await hibernaut("hostnames", "add", NAME, "--tls");
  expect(terms).toMatchObject({ code: 1, err: expect.stringMatching(/Read them, then agree/) });
  expect((await hibernaut("hostnames", "add", NAME, "--tls", "--agree-terms")).out).toMatch(
    /^App shop answers for www\.example\.com\.\nwww\.example\.com has a certificate until /,
  );
  await place.suspend(id);
  const secure = { servername: NAME, headers: { host: NAME }, ca: await pebble.root() };
  const get = () => request(`https://127.0.0.1:${tlsPort}`, secure);
  const patient = { timeout: 20_000, interval: 200 };
  const { status, headers } = await vi.waitFor(get, patient);
  expect([status, headers["hibernaut-wake"]]).toEqual([200, expect.stringMatching(/^resume;/)]);

  // The next platform has it at once.
  await place.served.stop();
  await place.served.start();
  expect(await get()).toMatchObject({ status: 200 });
  expect((await hibernaut("certs", "list")).out).toMatch(/^www\.example\.com +valid /m);
  await hibernaut("certs", "remove", NAME);
  await vi.waitFor(() => expect(get()).rejects.toThrow(), patient);
});
