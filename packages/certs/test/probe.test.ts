/** `certs check` over TLS: what a proxy shows for a name, asked at each of its addresses, also while an order is on its way. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createSecureContext, createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { challengeCertificate } from "../src/acme-library.ts";
import { ChallengeBoard } from "../src/challenges.ts";
import { probe } from "../src/probe.ts";

const NAME = "www.example.com";
const ADDRESSES = ["127.0.0.1", "127.0.0.2"];

/** A board, and a server at all addresses that shows what the board says. `asked` is called before each answer. */
async function rig(asked: () => Promise<void> = async () => {}) {
  const board = new ChallengeBoard();
  const server = createServer({
    ALPNProtocols: ["acme-tls/1"],
    SNICallback(name, done) {
      const shown = () => {
        const pem = board.certificates()[name];
        done(null, createSecureContext({ key: pem, cert: pem }));
      };
      asked().then(shown, done);
    },
  });
  server.on("secureConnection", (socket) => socket.on("error", () => {}));
  server.listen(0, "0.0.0.0");
  await once(server, "listening");
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const tlsPort = (server.address() as AddressInfo).port;
  const check = () =>
    probe({ board, challenge: "tls-alpn-01", tlsPort }, NAME, ADDRESSES, new AbortController().signal);
  return { board, check };
}

const bothOurs = ADDRESSES.map((address) => expect.objectContaining({ address, ours: true }));

test("every address of a name is found to be this platform's, and nothing stays published", async () => {
  const { board, check } = await rig();
  expect(await check()).toEqual(bothOurs);
  expect(board.certificates()).toEqual({});
});

test("two checks of a name at the same time do not disturb each other", async () => {
  const { board, check } = await rig();
  expect(await Promise.all([check(), check()])).toEqual([bothOurs, bothOurs]);
  expect(board.certificates()).toEqual({});
});

test("the certificate of an order stays shown during a check and after it", async () => {
  const shown = new Set<string | undefined>();
  const { board, check } = await rig(async () => void shown.add(board.certificates()[NAME]));
  const order = await challengeCertificate(NAME, "order");
  const end = await board.show(NAME, order);
  expect(await check()).toEqual(bothOurs);
  expect([...shown]).toEqual([order]);
  expect(board.certificates()).toEqual({ [NAME]: order });
  await end();
  expect(board.certificates()).toEqual({});
});

test("an order that begins during a check is shown, and the check still finds this platform", async () => {
  const order = await challengeCertificate(NAME, "order");
  let begun: Promise<unknown> | undefined;
  const { board, check } = await rig(async () => void (await (begun ??= board.show(NAME, order))));
  expect(await check()).toEqual(bothOurs);
  expect(board.certificates()).toEqual({ [NAME]: order });
});

test("another server's certificate is not ours", async () => {
  const { board, check } = await rig();
  // A proxy of another platform shows what that one published.
  board.certificates = () => ({ [NAME]: other });
  const other = await challengeCertificate(NAME, "other");
  expect(await check()).toEqual(
    ADDRESSES.map((address) => ({ address, ours: false, found: "it shows another certificate" })),
  );
});
