/** Routes that are WebSockets answer nothing else: an image or a link in a page opens none, and so does nothing there. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyRequest } from "fastify";
import type { Api } from "./deps.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whether the route is a WebSocket. Every route that is registered as one gets it. */
    upgrades?: true;
  }
}

/** Versions of the protocol that the platform speaks. */
const VERSIONS = new Set(["13", "8"]);
/** 16 bytes, in base64. */
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** Refuses other requests at the WebSockets that are registered after this, before anything is done for them. */
export function requireUpgrades(app: Api): void {
  app.addHook("onRoute", (route) => {
    if (route.websocket === true) route.config = { ...route.config, upgrades: true };
  });
  app.addHook("onRequest", async (request, reply) => {
    if (request.routeOptions.config.upgrades !== true || isWebSocket(request)) return;
    reply.headers({ upgrade: "websocket", connection: "upgrade" });
    const message =
      "This is a WebSocket. Send `Connection: upgrade`, `Upgrade: websocket`, `Sec-WebSocket-Version: 13` and a `Sec-WebSocket-Key`, as programs for WebSockets do.";
    throw new HibernautError("upgrade_required", message);
  });
}

function isWebSocket({ ws, headers }: FastifyRequest): boolean {
  const { "sec-websocket-version": version = "", "sec-websocket-key": key = "" } = headers;
  return ws && headers.upgrade?.toLowerCase() === "websocket" && VERSIONS.has(version) && KEY.test(key);
}
