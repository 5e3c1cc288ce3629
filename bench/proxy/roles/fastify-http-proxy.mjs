/** What you would use on Fastify: its own proxy, which is built on undici. */
import proxy from "@fastify/http-proxy";
import fastify from "fastify";
import { APP_PORT, HOST, MOST_CONNECTIONS, ready } from "./lib.mjs";

const server = fastify();
const undici = { connections: MOST_CONNECTIONS, pipelining: 1 };
await server.register(proxy, { upstream: `http://${HOST}:${APP_PORT}`, undici });
await server.listen({ host: HOST, port: 0 });
ready(/** @type {import("node:net").AddressInfo} */ (server.server.address()).port);
