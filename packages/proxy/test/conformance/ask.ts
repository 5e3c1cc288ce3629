/** One request as bytes, and what came back in a few words. */
import { once } from "node:events";
import { connect } from "node:net";

export interface Asked {
  /** `200 anna`: the status, and what the machine said, or the code of a refusal. */
  outcome: string;
  /** All that came. */
  text: string;
}

/** Sends the bytes on a connection of their own, and reads until its end: the request has to say `Connection: close`. */
export async function askRaw(port: number, request: string): Promise<Asked> {
  const socket = connect({ port, host: "127.0.0.1" });
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(Buffer.from(request, "latin1"));
  await once(socket, "close");
  const final = text.slice(text.search(/HTTP\/1\.1 [2-5]/));
  const status = /^HTTP\/1\.1 (\d+)/.exec(final)?.[1] ?? "nothing";
  const body = final.slice(final.indexOf("\r\n\r\n") + 4);
  const code = /^\{"error":"(\w+)"/.exec(body)?.[1];
  return { outcome: `${status} ${code ?? (status === "200" ? body : "")}`.trim(), text };
}
