/** The proxy library that most people would choose. */
import { Agent, createServer } from "node:http";
import { createProxyServer } from "http-proxy-3";
import { APP_PORT, HOST, listen, MOST_CONNECTIONS } from "./lib.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS });
const proxy = createProxyServer({ target: { host: HOST, port: APP_PORT }, agent });
proxy.on("error", () => {});
await listen(createServer((request, response) => proxy.web(request, response)));
