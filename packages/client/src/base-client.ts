/** How the methods of the client send their requests. */
import type { Method, Path, RouteReply, RouteRequest } from "./routes.ts";
import { type ClientOptions, send, sendForLines } from "./transport.ts";

/** What the parts of the client share. */
export abstract class BaseClient {
  protected readonly options: ClientOptions;

  constructor(options: ClientOptions) {
    this.options = options;
  }

  /** The platform's address, as it was given. */
  get apiUrl(): string {
    return this.options.apiUrl;
  }

  protected call<P extends Path, M extends Method>(
    method: M,
    path: P,
    request: RouteRequest<P, M>,
  ): Promise<RouteReply<P, M>> {
    return send(this.options, { ...request, method, path });
  }

  protected lines<P extends Path, M extends Method>(
    method: M,
    path: P,
    request: RouteRequest<P, M>,
  ): AsyncGenerator<string> {
    return sendForLines(this.options, { ...request, method, path });
  }
}
