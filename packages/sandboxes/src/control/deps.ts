/** What the routes of the control API work with. */
import type { FastifyReply } from "fastify";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import type { Sandboxes } from "../life/sandboxes.ts";
import type { SandboxTokens } from "../life/tokens.ts";

export interface ControlDeps {
  needs: SandboxNeeds;
  sandboxes: Sandboxes;
  tokens: SandboxTokens;
}

declare module "fastify" {
  interface FastifyRequest {
    /** The app of the key that came with the request. */
    sandboxApp: string;
  }
}

/** Aborted when the client has gone before it got its answer. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort(new Refusal(499, "The client is gone."));
  });
  return controller.signal;
}
