/** Plays one case through one proxy, and tells how it went. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { RawClient, until } from "../http/helpers.ts";
import type { App } from "./app.ts";
import { type Case, HELLO, type Step } from "./case.ts";

/** Plays the case through the proxy on `port`. */
export async function play({ client, expects }: Case, port: number, apps: readonly App[]): Promise<string> {
  const sent = isRaw(client) ? Buffer.concat(client.map(bytesOf)) : Buffer.from(HELLO);
  for (const app of apps) app.expect(expects ?? sent.length);
  if (!isRaw(client)) return secured(client, port, apps);
  const socket = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
  await once(socket, "connect");
  const raw = new RawClient(socket);
  const own = socket.localPort ?? 0;
  try {
    for (const step of client) await take(step, raw);
    await until(() => raw.ending !== undefined, "the end of the connection");
    const app = apps.find(({ name }) => raw.text === name);
    if (app !== undefined) return `${app.name}: ${app.got.equals(sent) ? "[all]" : shown(app.got, own, port)}`;
    return raw.text === "" ? "closed" : (alertIn(raw.text) ?? `said ${JSON.stringify(raw.text)}`);
  } finally {
    socket.destroy();
  }
}

function isRaw(client: Case["client"]): client is readonly Step[] {
  return Array.isArray(client);
}

function bytesOf(step: Step): Buffer {
  if (typeof step === "string") return Buffer.from(step, "latin1");
  if (Buffer.isBuffer(step)) return step;
  return "slowly" in step ? step.slowly : Buffer.alloc(0);
}

async function take(step: Step, client: RawClient): Promise<void> {
  if (typeof step === "string" || Buffer.isBuffer(step)) return void client.send(step);
  if ("event" in step) return void client.socket.end();
  await client.sendSlowly(step.slowly);
}

/** `alert 112`, for a record that ends a handshake. */
function alertIn(text: string): string | undefined {
  const bytes = Buffer.from(text, "latin1");
  return bytes[0] === 21 && bytes.length === 7 ? `alert ${bytes[6]}` : undefined;
}

/** What the app got, with the names of the two ports that are different each time. */
function shown(got: Buffer, client: number, port: number): string {
  // In version 2, where two bytes alone might be found elsewhere, the ports stand next to each other.
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(client);
  ports.writeUInt16BE(port, 2);
  const text = got
    .toString("latin1")
    .replaceAll(ports.toString("latin1"), "<client><port>")
    .replaceAll(String(client), "<client>")
    .replaceAll(String(port), "<port>");
  return text.replace(/[^ -~]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** A real client of TLS: which certificate it was shown, and what the app got. */
async function secured(options: ConnectionOptions, port: number, apps: readonly App[]): Promise<string> {
  const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  try {
    const outcome = await new Promise<string | undefined>((resolve) => {
      socket.once("secureConnect", () => resolve(undefined));
      socket.once("error", ({ message }) => resolve(alertOf(message)));
      socket.once("close", () => resolve("closed"));
    });
    if (outcome !== undefined) return outcome;
    const { subject } = socket.getPeerCertificate();
    socket.on("error", () => {}).write(HELLO);
    const name = await whole(socket);
    const app = apps.find((one) => one.name === name);
    const alpn = socket.alpnProtocol ? ` ${socket.alpnProtocol}` : "";
    return `${app?.name ?? "closed"} by ${String(subject.CN)} ${socket.getProtocol()}${alpn}: ${app?.got.toString()}`;
  } finally {
    socket.destroy();
  }
}

function alertOf(message: string): string {
  return /alert number \d+/.exec(message)?.[0].replace(" number", "") ?? "closed";
}

async function whole(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (piece) => (text += String(piece)));
  await Promise.race([once(socket, "end"), once(socket, "close")]);
  return text;
}
