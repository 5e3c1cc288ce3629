/** What a machine can be told to try. */
import { createSocket } from "node:dgram";
import { lookup, resolve4 } from "node:dns/promises";
import { connect } from "node:net";

/** An answer on this host takes milliseconds, also under emulation. */
const SILENCE_MS = 2500;
/** The first datagram waits for an ARP reply, which may be lost under load. */
const SECOND_MS = 300;

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? String(error);

/** The text that the server sends first, or the fault. */
function tcp(host: string, port: number): Promise<string> {
  return new Promise((done) => {
    const socket = connect(port, host, () => socket.write("GET / HTTP/1.0\r\n\r\n"));
    const end = (what: string) => {
      socket.destroy();
      done(what);
    };
    socket.setTimeout(SILENCE_MS, () => end(socket.connecting ? "silence" : "open"));
    socket.on("data", (text) => end(String(text).split("\r\n")[0] ?? ""));
    socket.on("error", (error) => end(codeOf(error))).on("end", () => end("closed"));
  });
}

/** Datagrams tell nothing about their fate: the one they are for does. */
function udp(host: string, port: number, text: string, from?: string): Promise<string> {
  return new Promise((done) => {
    const socket = createSocket("udp4");
    const end = (what: string) => {
      clearTimeout(timer);
      socket.close();
      done(what);
    };
    const send = () => socket.send(text, port, host);
    const timer = setTimeout(() => socket.send(text, port, host, () => end("sent")), SECOND_MS);
    socket.on("error", (error) => end(codeOf(error)));
    socket.bind(0, from, send);
  });
}

/** One thing to try: the kind, a host or a name, and for packets a port, a text and the address to send it from. */
export type Try = ["tcp" | "udp" | "dns" | "hosts", string, number?, string?, string?];

/** What came of it: what the far side said, the addresses of a name, or a code. */
export function tryOne([kind, host, port = 0, text = "", from]: Try): Promise<string | string[]> {
  if (kind === "tcp") return tcp(host, port);
  if (kind === "udp") return udp(host, port, text, from);
  if (kind === "dns") return resolve4(host).catch(codeOf);
  return lookup(host).then(({ address }) => address, codeOf);
}
