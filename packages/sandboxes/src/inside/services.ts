/** All services of E2B's agent that are spoken here. */
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { fileService } from "./file-service.ts";
import type { Inside } from "./inside.ts";
import { processService } from "./process-service.ts";

/** Registers them. `insideOf` finds the sandbox of a request. */
export function registerServices(router: ConnectRouter, insideOf: (context: HandlerContext) => Inside): void {
  processService(router, insideOf);
  fileService(router, insideOf);
}
