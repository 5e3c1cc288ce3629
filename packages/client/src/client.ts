/** The HTTP API as methods, for Node. */
import type { Readable } from "node:stream";
import type { ExecOptions, ExecSession } from "./exec.ts";
import { MachineClient } from "./machine-client.ts";
import { MachineHandle, type ReachOptions } from "./machine-handle.ts";
import { MACHINE, machineParams } from "./machine-path.ts";
import type { CreateSandboxOptions, ImageSource, UploadOptions, WriteArchiveOptions } from "./options.ts";
import { type CallOptions, type ClientOptions, send } from "./transport.ts";
import type { ExecRequest, ExecResult, PulledImage, UnpackedArchive } from "./types.ts";
import { sendImage } from "./upload.ts";

/**
 * A client of one platform. Every method rejects with an `ApiError`, or with the signal's reason when you abort it.
 * Apps are named by their names; machines and volumes by id, by name, or by the beginning of the id.
 *
 * @example
 * const client = new HibernautClient({ apiUrl: "http://127.0.0.1:4280", token });
 * const machine = await client.createMachine("shop", { config: { image: "oci:/srv/shop" } });
 * await client.waitForMachine("shop", machine.id);
 */
export class HibernautClient extends MachineClient {
  constructor(options: ClientOptions) {
    super(withCertificate(options));
  }

  /** Returns a machine to run commands and keep files in. Sends nothing yet. */
  machine(app: string, id: string): MachineHandle {
    return new MachineHandle(this, app, id);
  }

  /**
   * Makes a sandbox from a template of the app, and resolves once it runs. It ends when its time is over: see `sandbox` of
   * `createMachine`. Nothing is left of one that did not get so far. Rejects with `failed_precondition` while sandboxes are off.
   */
  async createSandbox(
    app: string,
    { template = "base", name, env, ...sandbox }: CreateSandboxOptions = {},
    options: ReachOptions = {},
  ): Promise<MachineHandle> {
    const { timeout: _timeout, ...call } = options;
    const body = { template, sandbox, ...(name !== undefined && { name }), ...(env !== undefined && { env }) };
    const { id } = await this.createMachine(app, body, call);
    const handle = this.machine(app, id);
    try {
      await handle.ready(options);
    } catch (error) {
      await handle.destroy().catch(() => {}); // Why it did not come up is better to know.
      throw error;
    }
    return handle;
  }

  /** Runs a command in a machine and resolves when the command has ended. An aborted one is killed. */
  override async runExec(app: string, id: string, body: ExecRequest, options: CallOptions = {}): Promise<ExecResult> {
    // A `fetch` of the caller's own is used as it is.
    if (this.options.fetch !== undefined && this.options.clientCertificate === undefined)
      return super.runExec(app, id, body, options);
    const { longPost } = await import("./http-exchange.ts");
    const address = { path: `${MACHINE}/exec`, params: machineParams(app, id) };
    return longPost(this.options, address, body, options.signal);
  }

  /** Starts a command in a machine and streams its input and outputs. */
  async openExec(app: string, id: string, exec: ExecOptions): Promise<ExecSession> {
    const { openSession } = await import("./exec.ts");
    const query = { ...exec };
    return openSession(this.options, { path: `${MACHINE}/exec`, params: machineParams(app, id), query });
  }

  /**
   * Connects to a TCP port inside a machine, on its loopback interface. Wakes the machine. `stdin` is what its program
   * receives, `stdout` what it sends; each may end first. `exit` says how it ended: `exit_code` 2 if nothing listens there.
   */
  async openForward(app: string, id: string, port: number): Promise<ExecSession> {
    const { openSession } = await import("./exec.ts");
    return openSession(this.options, { path: `${MACHINE}/forward`, params: machineParams(app, id), query: { port } });
  }

  /**
   * Copies a file or directory out of a machine. Resolves with a tar archive, whose stream fails if the archive is not
   * whole. Its entries begin with the last part of the path.
   */
  async readArchive(app: string, id: string, path: string, { signal }: CallOptions = {}): Promise<Readable> {
    const { readArchive } = await import("./archive.ts");
    return readArchive(
      this.options,
      { path: `${MACHINE}/archive`, params: machineParams(app, id), query: { path } },
      { signal },
    );
  }

  /**
   * Unpacks a tar archive in a directory of a machine. Resolves when everything is there. The files belong to the
   * image's user, or with `owner: "archive"` to whom the archive says.
   */
  async writeArchive(
    app: string,
    id: string,
    path: string,
    archive: Readable,
    { owner, signal }: WriteArchiveOptions = {},
  ): Promise<UnpackedArchive> {
    const { writeArchive } = await import("./archive.ts");
    const address = { path: `${MACHINE}/archive`, params: machineParams(app, id), query: { path, owner } };
    return writeArchive(this.options, address, archive, signal);
  }

  /**
   * Backs up the whole platform. Resolves with a tar archive of a data directory, which holds all secrets. Its stream fails
   * if the archive is not whole; `getBackup` then says why.
   */
  async createBackup({ signal }: CallOptions = {}): Promise<Readable> {
    const { readArchive } = await import("./archive.ts");
    return readArchive(this.options, { path: "/v1/platform/backup" }, { method: "POST", signal });
  }

  /**
   * Uploads an image from this machine and resolves when it is ready, with the reference for machines and releases. Sends
   * only what the platform does not have, and continues after a lost connection. An aborted upload keeps what has
   * arrived: the next one continues.
   */
  async uploadImage(
    source: ImageSource,
    { onProgress, retryMs, ...options }: UploadOptions = {},
  ): Promise<PulledImage> {
    const body = { name: source.name, manifest: source.manifest };
    const path = "/v1/images/blobs/{digest}";
    const ref = await sendImage(
      source,
      {
        begin: (signal) => this.call("post", "/v1/images/uploads", { body, signal }),
        append: (digest, offset, bytes, signal) =>
          send(this.options, { method: "patch", path, params: { digest }, query: { offset }, bytes, signal }),
      },
      { ...options, ...(onProgress && { onProgress }), ...(retryMs !== undefined && { retryMs }) },
    );
    return this.pullImage(ref, { ...options, ...(onProgress && { onProgress }) });
  }
}

/**
 * Returns options whose requests show the client's certificate, if there is one: Node's own `fetch` cannot. The code for it is
 * loaded by the first of them.
 */
function withCertificate(options: ClientOptions): ClientOptions {
  const { apiUrl, clientCertificate, fetch: given } = options;
  // What is not an address is refused with the first request.
  if (clientCertificate === undefined || given !== undefined || !/^https:/i.test(apiUrl)) return options;
  let certified: Promise<typeof fetch> | undefined;
  return {
    ...options,
    async fetch(input, init) {
      certified ??= import("./certified-fetch.ts").then(({ certifiedFetch }) => certifiedFetch(clientCertificate));
      return (await certified)(input, init);
    },
  };
}
