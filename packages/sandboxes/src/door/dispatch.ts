/** Takes each request where it belongs, and opens the inside of a sandbox only to who may. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { SandboxNeeds } from "../contract.ts";
import { failureOf, Refusal } from "../failure.ts";
import { blameClient, inConnectTerms } from "../inside/connect-error.ts";
import type { Guests } from "../inside/guests.ts";
import { type Inside, namedUser } from "../inside/inside.ts";
import { MOST_MESSAGE_BYTES } from "../inside/limits.ts";
import type { Processes } from "../inside/processes.ts";
import { registerServices } from "../inside/services.ts";
import { targetOf } from "../inside/target.ts";
import { transfer } from "../inside/transfer.ts";
import { Watchers } from "../inside/watchers.ts";
import type { Sandboxes } from "../life/sandboxes.ts";
import type { SandboxTokens } from "../life/tokens.ts";
import { type SandboxView, stateOf } from "../life/view.ts";
import { addressOf, INSIDE_PORT, type SandboxAddress } from "./address.ts";
import type { Door } from "./listener.ts";
import { passOn, passUpgrade } from "./ports.ts";

interface DispatchDeps {
  needs: SandboxNeeds;
  sandboxes: Sandboxes;
  tokens: SandboxTokens;
  processes: Processes;
  guests: Guests;
  control(request: IncomingMessage, response: ServerResponse): void;
}

const INSIDE = createContextKey<Inside | undefined>(undefined);

export function dispatch({ needs, sandboxes, tokens, processes, guests, control }: DispatchDeps): Door {
  const insides = new WeakMap<IncomingMessage, Inside>();
  const watchers = new Watchers();
  const insideOf = (context: HandlerContext) => {
    const inside = context.values.get(INSIDE);
    if (inside === undefined) throw new Refusal(500, "The request has no sandbox.");
    return inside;
  };
  const transferred = (request: IncomingMessage, response: ServerResponse, fail: (error: unknown) => void) => {
    const inside = insides.get(request);
    if (inside === undefined) fail(new Refusal(500, "The request has no sandbox."));
    else transfer(inside, request, response).catch(fail);
  };
  const failures = new WeakMap<ServerResponse, (error: unknown) => void>();
  const services = connectNodeAdapter({
    routes: (router) => registerServices(router, insideOf),
    grpc: false,
    requestGate: blameClient,
    interceptors: [inConnectTerms],
    readMaxBytes: MOST_MESSAGE_BYTES,
    contextValues: (request) => createContextValues().set(INSIDE, insides.get(request as IncomingMessage)),
    fallback: (request, response) => {
      const fail = failures.get(response as ServerResponse) ?? (() => {});
      transferred(request as IncomingMessage, response as ServerResponse, fail);
    },
  });

  /** The sandbox, running: woken if it may be. Throws 502, as the clients expect it, when it is not there to be used. */
  const awake = async (address: SandboxAddress, signal: AbortSignal): Promise<SandboxView> => {
    const view = sandboxes.find(address.id);
    if (view === undefined) throw new Refusal(502, "The sandbox was not found");
    const { app, id, state, sandbox } = view.record;
    if (state === "running") return view;
    if (stateOf(view) === "running") return sandboxes.awake(app, id, signal);
    // What was stopped with its files alone is resumed by its client only.
    if (!sandbox.auto_resume || sandbox.keep_memory === false) throw new Refusal(502, "The sandbox was not found");
    return sandboxes.wake(view, signal);
  };

  const enter = async (address: SandboxAddress, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const found = sandboxes.find(address.id);
    const path = (request.url ?? "/").split("?")[0];
    // A client that asks how a sandbox is does not wake it.
    if (path === "/health") {
      if (found?.record.state !== "running") throw new Refusal(502, "The sandbox was not found");
      response.writeHead(204).end();
      return;
    }
    const target = targetOf(request);
    if (found !== undefined) requireInside(found, request, target, tokens);
    const signal = goneSignal(response);
    const view = await awake(address, signal);
    const inside: Inside = {
      ...{ view, guest: guests.of(view), processes, watchers, signal },
      named: namedUser(request.headers.authorization),
      breakOff: () => void response.destroy(),
    };
    insides.set(request, inside);
    await new Promise<void>((resolve, reject) => {
      failures.set(response, reject);
      response.once("close", resolve);
      services(request, response);
    });
  };

  const portOf = async (address: SandboxAddress, request: IncomingMessage, signal: AbortSignal) => {
    const found = sandboxes.find(address.id);
    if (found !== undefined) requireTraffic(found, request, tokens);
    const view = await awake(address, signal);
    const { app, id, sandbox } = view.record;
    const mask = sandbox.network?.mask_request_host;
    const { port } = address;
    if (port === 0) throw new Refusal(400, "A port is a number from 1 to 65535.");
    return {
      port,
      connect: () => needs.resources.forwards.connect(app, id, port),
      host: mask?.replaceAll("${PORT}", String(port)),
    };
  };

  return {
    allowsPages(request) {
      const address = addressOf(request.headers, needs.domain);
      return address === undefined || address.port === INSIDE_PORT;
    },
    async handle(request, response) {
      const address = addressOf(request.headers, needs.domain);
      if (address === undefined) control(request, response);
      else if (address.port === INSIDE_PORT) await enter(address, request, response);
      else await passOn(request, response, await portOf(address, request, goneSignal(response)));
    },
    async upgrade(request, socket, head) {
      const address = addressOf(request.headers, needs.domain);
      if (address === undefined || address.port === INSIDE_PORT)
        throw new Refusal(400, "Nothing here can be upgraded to.");
      const gone = new AbortController();
      socket.once("close", () => gone.abort(new Refusal(499, "The client is gone.")));
      const to = await portOf(address, request, gone.signal);
      if (!socket.destroyed) passUpgrade(request, socket, head, to);
    },
    refusal(request, error) {
      const { code, message } = failureOf(error);
      const address = addressOf(request.headers, needs.domain);
      const ofPort = address !== undefined && code === 502 ? { sandboxId: address.id } : {};
      const port = address !== undefined && /port \d+ is not open/.test(message) ? { port: address.port } : {};
      return { status: code, body: { ...ofPort, ...port, message, code } };
    },
  };
}

function requireInside(view: SandboxView, request: IncomingMessage, url: URL, tokens: SandboxTokens): void {
  const { id, sandbox } = view.record;
  if (!sandbox.secure) return;
  const header = request.headers["x-access-token"];
  if (tokens.opens(id, "inside", typeof header === "string" ? header : undefined)) return;
  const signature = url.searchParams.get("signature");
  const operation = request.method === "POST" ? "write" : "read";
  const until = url.searchParams.get("signature_expiration");
  if (signature !== null && url.pathname === "/files") {
    const expiration = until === null ? {} : { expiration: Number(until) };
    const signed = {
      path: url.searchParams.get("path") ?? "",
      user: url.searchParams.get("username") ?? "",
      signature,
    };
    if (tokens.signed(id, operation, { ...signed, ...expiration })) return;
    const past = until !== null && !(Number(until) * 1000 > Date.now());
    throw new Refusal(401, past ? "signature is already expired" : "invalid signature");
  }
  throw new Refusal(401, "The access token of this sandbox is missing or wrong.");
}

function requireTraffic(
  { record: { id, sandbox } }: SandboxView,
  request: IncomingMessage,
  tokens: SandboxTokens,
): void {
  if (sandbox.network?.allow_public_traffic !== false) return;
  const header = request.headers["e2b-traffic-access-token"];
  if (tokens.opens(id, "traffic", typeof header === "string" ? header : undefined)) return;
  throw new Refusal(
    403,
    "This sandbox answers only with its traffic access token, in the header `e2b-traffic-access-token`.",
  );
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort(new Refusal(499, "The client is gone.")));
  return controller.signal;
}
