/** What the routes of the control API work with. */
import type { FastifyReply } from "fastify";
import type { Builds } from "../build/builds.ts";
import type { UploadLinks } from "../build/links.ts";
import type { Uploads } from "../build/uploads.ts";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import type { Guests } from "../inside/guests.ts";
import type { TemplateNames } from "../life/names.ts";
import type { Sandboxes } from "../life/sandboxes.ts";
import type { SandboxTokens } from "../life/tokens.ts";
import type { Openers } from "../volume/openers.ts";
import type { SandboxVolumes } from "../volume/volumes.ts";

export interface ControlDeps {
  needs: SandboxNeeds;
  sandboxes: Sandboxes;
  tokens: SandboxTokens;
  names: TemplateNames;
  builds: Builds;
  uploads: Uploads;
  links: UploadLinks;
  volumes: SandboxVolumes;
  openers: Openers;
  guests: Guests;
  /** Whether the port speaks TLS. */
  secure: boolean;
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
