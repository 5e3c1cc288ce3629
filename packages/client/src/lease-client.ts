/** Methods about who may change a machine, and what is written about it for programs. */
import { AppClient } from "./app-client.ts";
import { MACHINE, machineParams } from "./machine-path.ts";
import type { LeaseOptions } from "./options.ts";
import type { CallOptions } from "./transport.ts";
import type { Lease, OwnLease } from "./types.ts";

/** The part of the client about leases and metadata of machines. */
export abstract class LeaseClient extends AppClient {
  /**
   * Takes a lease on a machine: until it ends, only requests with its `nonce` as `leaseNonce` change the machine. With
   * `leaseNonce`, that lease lasts `ttl` seconds from now. Rejects with `lease_held` while another client has one, and with
   * `failed_precondition` when the lease of the nonce has ended.
   */
  takeLease(app: string, id: string, { ttl, description, ...options }: LeaseOptions = {}): Promise<OwnLease> {
    return this.call("post", `${MACHINE}/lease`, {
      params: machineParams(app, id),
      body: { ttl, description },
      ...options,
    });
  }

  /** Returns the lease on a machine. Rejects with `not_found` when there is none. */
  getLease(app: string, id: string, options?: CallOptions): Promise<Lease> {
    return this.call("get", `${MACHINE}/lease`, { params: machineParams(app, id), ...options });
  }

  /** Gives back the lease whose nonce is sent. Rejects with `not_found` when it has ended. */
  async releaseLease(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.call("delete", `${MACHINE}/lease`, { params: machineParams(app, id), ...options });
  }

  /** Ends the lease of another client, which is gone. Rejects with `not_found` when there is none. */
  async clearLease(app: string, id: string, options?: CallOptions): Promise<void> {
    const query = { force: true };
    await this.call("delete", `${MACHINE}/lease`, { params: machineParams(app, id), query, ...options });
  }

  /** Returns a machine's metadata. */
  getMetadata(app: string, id: string, options?: CallOptions): Promise<Record<string, string>> {
    return this.call("get", `${MACHINE}/metadata`, { params: machineParams(app, id), ...options });
  }

  /** Changes a machine's metadata, at once and without a new version; null removes a key. Resolves with all of them. */
  changeMetadata(
    app: string,
    id: string,
    change: Readonly<Record<string, string | null>>,
    options?: CallOptions,
  ): Promise<Record<string, string>> {
    return this.call("patch", `${MACHINE}/metadata`, { params: machineParams(app, id), body: change, ...options });
  }
}
