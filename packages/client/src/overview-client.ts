/** Methods for those who look at a platform: who is signed in, what machines did, what the host is like. */
import { BaseClient } from "./base-client.ts";
import type { TimelineOptions } from "./options.ts";
import type { CallOptions } from "./transport.ts";
import type { Finding, Host, Session, Timeline, Wakes } from "./types.ts";

/** The part of the client that the dashboard is made with. See {@link BaseClient}. */
export abstract class OverviewClient extends BaseClient {
  /** Signs a browser in: exchanges a token for a cookie that scripts cannot read. */
  startSession(token: string, options?: CallOptions): Promise<Session> {
    return this.call("post", "/v1/session", { body: { token }, ...options });
  }

  /** Returns who is signed in, or whose token the client has. Rejects with `unauthenticated` if nobody is. */
  getSession(options?: CallOptions): Promise<Session> {
    return this.call("get", "/v1/session", { ...options });
  }

  /** Signs the browser out. */
  async endSession(options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/session", { ...options });
  }

  /** Returns what machines did over time. Default: those of all apps, in the last 24 hours. */
  getTimeline({ hours, app, ...options }: TimelineOptions = {}): Promise<Timeline> {
    return this.call("get", "/v1/timeline", { query: { hours, app }, ...options });
  }

  /** Returns how machines woke, hour by hour. Default: those of all apps, in the last 24 hours. */
  getWakes({ hours, app, ...options }: TimelineOptions = {}): Promise<Wakes> {
    return this.call("get", "/v1/wakes", { query: { hours, app }, ...options });
  }

  /** Returns what the platform runs on, and what of it is taken. */
  getHost(options?: CallOptions): Promise<Host> {
    return this.call("get", "/v1/platform/host", { ...options });
  }

  /** Checks the platform's host, as `hibernaut doctor` does there. */
  async listFindings(options?: CallOptions): Promise<Finding[]> {
    return (await this.call("get", "/v1/platform/doctor", { ...options })).findings;
  }
}
