/** The API as the dashboard uses it. */
import { BrowserClient, type CallOptions, send } from "@hibernaut/client/browser";
import type { Finding, Host, Session, Timeline, Wakes } from "./contract.ts";

interface TimelineOptions extends CallOptions {
  hours?: number;
  app?: string;
}

/** The client with the routes that are the dashboard's own. */
export class Api extends BrowserClient {
  /** Signs in: from then on the browser's cookie authenticates. */
  startSession(token: string, options?: CallOptions): Promise<Session> {
    return send(this.options, { method: "post", path: "/v1/session", body: { token }, ...options });
  }

  /** Returns who is signed in. Rejects with `unauthenticated` if nobody is. */
  getSession(options?: CallOptions): Promise<Session> {
    return send(this.options, { method: "get", path: "/v1/session", ...options });
  }

  /** Signs out. */
  async endSession(options?: CallOptions): Promise<void> {
    await send(this.options, { method: "delete", path: "/v1/session", ...options });
  }

  /** Returns what machines did in the last hours. */
  getTimeline({ hours, app, ...options }: TimelineOptions = {}): Promise<Timeline> {
    return send(this.options, { method: "get", path: "/v1/timeline", query: { hours, app }, ...options });
  }

  /** Returns how many wakes there were in each hour, and how long they took. */
  getWakes({ hours, app, ...options }: TimelineOptions = {}): Promise<Wakes> {
    return send(this.options, { method: "get", path: "/v1/wakes", query: { hours, app }, ...options });
  }

  /** Returns what the platform runs on. */
  getHost(options?: CallOptions): Promise<Host> {
    return send(this.options, { method: "get", path: "/v1/platform/host", ...options });
  }

  /** Checks the platform's host. */
  async listFindings(options?: CallOptions): Promise<Finding[]> {
    const reply = await send<{ findings: Finding[] }>(this.options, {
      method: "get",
      path: "/v1/platform/doctor",
      ...options,
    });
    return reply.findings;
  }
}
