/** One HTTP request over a new connection, written by hand, to see when the first byte of the answer arrives. */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * A slower handshake has lost a packet, because the guest was not up yet. The kernel would repeat it only after 1 s.
 */
const CONNECT_MS = 250;
const ANSWER_MS = 60_000;

/** The time in milliseconds, on a clock that all processes of this host share. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * @typedef {object} Answer Times are of {@link now}.
 * @property {number} began When the client began to connect.
 * @property {number} connected
 * @property {number} firstByte
 * @property {string} wake The value of `Hibernaut-Wake`; empty if the header is missing.
 * @property {{ nonce: string, count: number }} body The counter's answer.
 *
 * @typedef {{ host: string, port: number, name: string }} Target `name` is the value of the `Host` header.
 */

/** @param {Target} target @returns {Promise<Answer>} */
export async function ask({ host, port, name }) {
  const times = { began: now(), connected: Number.NaN, firstByte: Number.NaN };
  const text = await new Promise((resolve, reject) => {
    let received = "";
    const socket = connect({ host, port, noDelay: true });
    const giveUp = (/** @type {string} */ why) => socket.destroy(new Error(`${host}:${port} ${why}.`));
    let timer = setTimeout(() => giveUp("does not accept a connection"), CONNECT_MS);
    socket.once("connect", () => {
      times.connected = now();
      clearTimeout(timer);
      timer = setTimeout(() => giveUp("does not answer"), ANSWER_MS);
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
    });
    socket.once("data", () => {
      times.firstByte = now();
    });
    socket.setEncoding("latin1").on("data", (chunk) => {
      received += chunk;
    });
    socket.once("error", reject);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(received);
    });
  });
  return { ...times, ...parse(text) };
}

/**
 * Repeats the request every `pauseMs` milliseconds until it is answered.
 *
 * @param {Target} target
 * @param {number} pauseMs
 */
export async function askUntilAnswered(target, pauseMs) {
  const deadline = now() + ANSWER_MS;
  for (;;) {
    try {
      return await ask(target);
    } catch (error) {
      if (now() > deadline) throw error;
      await delay(pauseMs);
    }
  }
}

/** @param {string} text */
function parse(text) {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  if (!head.startsWith("HTTP/1.1 200 "))
    throw new Error(`The app did not answer with status 200: ${text.slice(0, 500) || "(nothing)"}`);
  const body = rest.join("\r\n\r\n");
  // The app's answer may come in chunks; its JSON is one line.
  const json = body.slice(body.indexOf("{"), body.lastIndexOf("}") + 1);
  return { wake: /^hibernaut-wake: *(.*)$/im.exec(head)?.[1]?.trim() ?? "", body: JSON.parse(json) };
}
