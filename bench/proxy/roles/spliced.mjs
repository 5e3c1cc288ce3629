/** The upper bound for a proxy on Node: it copies bytes from socket to socket without looking at them. */
import { connect, createServer } from "node:net";
import { APP_PORT, HOST, listen } from "./lib.mjs";

await listen(
  createServer({ noDelay: true }, (client) => {
    const app = connect({ host: HOST, port: APP_PORT, noDelay: true });
    client.on("data", (chunk) => app.write(chunk)).on("error", () => {});
    app.on("data", (chunk) => client.write(chunk)).on("error", () => {});
    client.on("close", () => app.destroy());
    app.on("close", () => client.destroy());
  }),
);
