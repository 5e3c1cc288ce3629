/**
 * HTTPS by itself: a hostname gets a certificate from an authority, and a request over HTTPS wakes its machine.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { request } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { startDns } from "../../../certs/test/dns-server.ts";
import { startPebble } from "../../../certs/test/pebble.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
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
  const hibernaut = async (...args: string[]) => {
    // The API has another port after each start.
    const platform = { HIBERNAUT_API_URL: place.served.apiUrl, HIBERNAUT_API_TOKEN: await place.token() };
    const env = { ...process.env, ...platform, HIBERNAUT_APP: place.app };
    return (await promisify(execFile)(process.execPath, [CLI, ...args], { env })).stdout;
  };

  const { machine_id: id } = await place.machine({ services: [{ internal_port: 8080, autostop: "suspend" }] });
  await expect(hibernaut("hostnames", "add", NAME, "--tls")).rejects.toThrow(/Read them, then agree/);
  expect(await hibernaut("hostnames", "add", NAME, "--tls", "--agree-terms")).toMatch(
    /^App shop answers for www\.example\.com\.\nwww\.example\.com has a certificate until /,
  );
  await place.suspend(id);
  const ca = await pebble.root();
  const answer = await vi.waitFor(() => get({ port: tlsPort, ca }), { timeout: 20_000, interval: 200 });
  expect(answer).toEqual({ status: 200, wake: expect.stringMatching(/^resume;/) });

  // The next platform has it at once.
  await place.served.stop();
  await place.served.start();
  expect(await get({ port: tlsPort, ca })).toMatchObject({ status: 200 });
  expect(await hibernaut("certs", "list")).toMatch(/^www\.example\.com +valid /m);
  await hibernaut("certs", "remove", NAME);
  await vi.waitFor(() => expect(get({ port: tlsPort, ca })).rejects.toThrow(), { timeout: 20_000, interval: 200 });
});

function get({ port, ca }: { port: number; ca: string }): Promise<{ status: number; wake: unknown }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, servername: NAME, headers: { host: NAME }, ca, agent: false };
    request(options, (response) => {
      response.resume().on("end", () => {
        resolve({ status: response.statusCode ?? 0, wake: response.headers["hibernaut-wake"] });
      });
    })
      .on("error", reject)
      .end();
  });
}
