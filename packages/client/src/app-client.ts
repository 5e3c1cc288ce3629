/** Methods about apps: their releases, volumes, hostnames, certificates and secrets. */
import type {
  CreateAppOptions,
  DestroyOptions,
  DryRunOptions,
  LimitOptions,
  PutPreviewOptions,
  ReleaseCommandOptions,
  RevokeOptions,
} from "./options.ts";
import { PlatformClient } from "./platform-client.ts";
import { readReleaseCommand } from "./progress.ts";
import type { CallOptions, ListOptions } from "./transport.ts";
import type {
  AddCertificateRequest,
  App,
  Certificate,
  CertificateFinding,
  CreateReleaseRequest,
  CreateTemplateRequest,
  CreateVolumeRequest,
  ExtendedVolume,
  MachineConfig,
  Quota,
  Release,
  ReleaseCommandEnd,
  Secret,
  SecretsEffect,
  Template,
  UpdateAppRequest,
  UpdateQuotaRequest,
  UpdateReleaseRequest,
  UpdateVolumeRequest,
  Volume,
  VolumeSnapshot,
} from "./types.ts";

/** The part of the client about apps. See {@link BaseClient}. */
export abstract class AppClient extends PlatformClient {
  /** Returns all apps. */
  async listApps(options?: CallOptions): Promise<App[]> {
    return (await this.call("get", "/v1/apps", { ...options })).apps;
  }

  /** Creates an app. */
  createApp(name: string, { network, aliases, wakes, ...options }: CreateAppOptions = {}): Promise<App> {
    const body = {
      app_name: name,
      ...(network !== undefined && { network }),
      ...(aliases && { aliases: [...aliases] }),
      ...(wakes && { wakes: [...wakes] }),
    };
    return this.call("post", "/v1/apps", { body, ...options });
  }

  /** Returns what an app may have, and what it has. */
  getQuota(name: string, options?: CallOptions): Promise<Quota> {
    return this.call("get", "/v1/apps/{app_name}/quota", { params: { app_name: name }, ...options });
  }

  /** Changes some limits of an app. 0 means without limit, and null the platform's. */
  updateQuota(name: string, body: UpdateQuotaRequest, options?: CallOptions): Promise<Quota> {
    return this.call("put", "/v1/apps/{app_name}/quota", { params: { app_name: name }, body, ...options });
  }

  /** Returns an app. */
  getApp(name: string, options?: CallOptions): Promise<App> {
    return this.call("get", "/v1/apps/{app_name}", { params: { app_name: name }, ...options });
  }

  /** Changes an app, such as whether anyone may see how it is. */
  updateApp(name: string, body: UpdateAppRequest, options?: CallOptions): Promise<App> {
    return this.call("patch", "/v1/apps/{app_name}", { params: { app_name: name }, body, ...options });
  }

  /** Destroys an app. One that has machines or volumes needs `force`, which destroys them, too. */
  async destroyApp(name: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    const query = { force };
    await this.call("delete", "/v1/apps/{app_name}", { params: { app_name: name }, query, ...options });
  }

  /** Returns the previews of an app. */
  async listPreviews(app: string, options?: CallOptions): Promise<App[]> {
    return (await this.call("get", "/v1/apps/{app_name}/previews", { params: { app_name: app }, ...options })).previews;
  }

  /** Makes a preview of an app, which is an app of its own, or renews it. */
  putPreview(app: string, name: string, given: PutPreviewOptions = {}): Promise<App> {
    const { ttl, copy_secrets, network, aliases, wakes, ...options } = given;
    const body = { ttl, copy_secrets, network, aliases, wakes };
    const request = { params: { app_name: app, preview: name }, body, ...options };
    return this.call("put", "/v1/apps/{app_name}/previews/{preview}", request);
  }

  /** Destroys a preview with its machines and volumes. */
  async destroyPreview(app: string, name: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, preview: name };
    await this.call("delete", "/v1/apps/{app_name}/previews/{preview}", { params, ...options });
  }

  /** Returns an app's releases, newest first. Default limit: 25. */
  async listReleases(app: string, { limit, ...options }: LimitOptions = {}): Promise<Release[]> {
    const request = { params: { app_name: app }, query: { limit }, ...options };
    return (await this.call("get", "/v1/apps/{app_name}/releases", request)).releases;
  }

  /** Pulls the image and records that it is being deployed. Changes no machine. */
  createRelease(app: string, body: CreateReleaseRequest, options?: CallOptions): Promise<Release> {
    return this.call("post", "/v1/apps/{app_name}/releases", { params: { app_name: app }, body, ...options });
  }

  /** Records how a release ended. */
  updateRelease(app: string, version: number, body: UpdateReleaseRequest, options?: CallOptions): Promise<Release> {
    const params = { app_name: app, version: String(version) };
    return this.call("post", "/v1/apps/{app_name}/releases/{version}", { params, body, ...options });
  }

  /**
   * Runs the command of a pending release in a temporary machine: what `init` of the configuration says, with the image of
   * the release. Resolves when the machine is gone. To cancel, abort the signal.
   *
   * @param options `timeout` is in seconds, 300 by default; `onLine` is called with each line of the machine's log
   */
  runReleaseCommand(
    app: string,
    version: number,
    config: MachineConfig,
    { timeout, onLine, ...options }: ReleaseCommandOptions = {},
  ): Promise<ReleaseCommandEnd> {
    const params = { app_name: app, version: String(version) };
    const body = { config, timeout };
    const path = "/v1/apps/{app_name}/releases/{version}/command";
    return readReleaseCommand(this.lines("post", path, { params, body, ...options }), onLine);
  }

  /** Returns an app's volumes, oldest first. */
  listVolumes(app: string, options?: ListOptions): Promise<Volume[]> {
    return this.call("get", "/v1/apps/{app_name}/volumes", { params: { app_name: app }, ...options });
  }

  /** Lists the templates of an app. */
  listTemplates(app: string, options?: CallOptions): Promise<Template[]> {
    return this.call("get", "/v1/apps/{app_name}/templates", { params: { app_name: app }, ...options });
  }

  /**
   * Keeps the state that a running or suspended machine has now, or that of one that is made of a configuration. Resolves when
   * that is stored, which may take minutes.
   */
  createTemplate(app: string, body: CreateTemplateRequest, options?: CallOptions): Promise<Template> {
    return this.call("post", "/v1/apps/{app_name}/templates", { params: { app_name: app }, body, ...options });
  }

  /** Returns a template. */
  getTemplate(app: string, template: string, options?: CallOptions): Promise<Template> {
    const params = { app_name: app, template };
    return this.call("get", "/v1/apps/{app_name}/templates/{template}", { params, ...options });
  }

  /** Sets how many machines of a template are kept asleep, ready to be taken. */
  setTemplatePool(app: string, template: string, warmPool: number, options?: CallOptions): Promise<Template> {
    const params = { app_name: app, template };
    const body = { warm_pool: warmPool };
    return this.call("post", "/v1/apps/{app_name}/templates/{template}", { params, body, ...options });
  }

  /** Deletes a template. The machines that were made from it stay. `onMissing` gets the hosts that are away and have it still. */
  async deleteTemplate(app: string, template: string, options?: ListOptions): Promise<void> {
    const params = { app_name: app, template };
    await this.call("delete", "/v1/apps/{app_name}/templates/{template}", { params, ...options });
  }

  /** Returns a volume. */
  getVolume(app: string, id: string, options?: CallOptions): Promise<Volume> {
    const params = { app_name: app, volume_id: id };
    return this.call("get", "/v1/apps/{app_name}/volumes/{volume_id}", { params, ...options });
  }

  /** Creates a volume, empty or from a snapshot. */
  createVolume(app: string, body: CreateVolumeRequest, options?: CallOptions): Promise<Volume> {
    return this.call("post", "/v1/apps/{app_name}/volumes", { params: { app_name: app }, body, ...options });
  }

  /** Changes how snapshots of a volume are taken and kept. */
  updateVolume(app: string, id: string, body: UpdateVolumeRequest, options?: CallOptions): Promise<Volume> {
    const params = { app_name: app, volume_id: id };
    return this.call("put", "/v1/apps/{app_name}/volumes/{volume_id}", { params, body, ...options });
  }

  /** Extends a volume to `sizeGb` GB. Its machine sees the new size after its next cold start. */
  extendVolume(app: string, id: string, sizeGb: number, options?: CallOptions): Promise<ExtendedVolume> {
    const request = { params: { app_name: app, volume_id: id }, body: { size_gb: sizeGb }, ...options };
    return this.call("put", "/v1/apps/{app_name}/volumes/{volume_id}/extend", request);
  }

  /** Destroys a volume and its snapshots. Rejects when a machine uses it. */
  async destroyVolume(app: string, id: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, volume_id: id };
    await this.call("delete", "/v1/apps/{app_name}/volumes/{volume_id}", { params, ...options });
  }

  /** Returns a volume's snapshots, newest first. */
  listVolumeSnapshots(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot[]> {
    const params = { app_name: app, volume_id: id };
    return this.call("get", "/v1/apps/{app_name}/volumes/{volume_id}/snapshots", { params, ...options });
  }

  /** Takes a snapshot of a volume. Resolves when the copy is complete. */
  createVolumeSnapshot(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot> {
    const params = { app_name: app, volume_id: id };
    return this.call("post", "/v1/apps/{app_name}/volumes/{volume_id}/snapshots", { params, ...options });
  }

  /** Destroys a snapshot of a volume. */
  async destroyVolumeSnapshot(app: string, id: string, snapshotId: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, volume_id: id, snapshot_id: snapshotId };
    const path = "/v1/apps/{app_name}/volumes/{volume_id}/snapshots/{snapshot_id}";
    await this.call("delete", path, { params, ...options });
  }

  /** Returns the hostnames that an app answers for, in addition to `<app>.localhost`. */
  async listHostnames(app: string, options?: CallOptions): Promise<string[]> {
    const request = { params: { app_name: app }, ...options };
    return (await this.call("get", "/v1/apps/{app_name}/hostnames", request)).hostnames;
  }

  /** Lets an app answer for a hostname. Returns the hostname as it is stored. */
  async addHostname(app: string, hostname: string, options?: CallOptions): Promise<string> {
    const request = { params: { app_name: app }, body: { hostname }, ...options };
    return (await this.call("post", "/v1/apps/{app_name}/hostnames", request)).hostname;
  }

  /** Takes a hostname away from an app. */
  async removeHostname(app: string, hostname: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, hostname };
    await this.call("delete", "/v1/apps/{app_name}/hostnames/{hostname}", { params, ...options });
  }

  /** Returns the certificates that the platform manages for an app. */
  async listCertificates(app: string, options?: CallOptions): Promise<Certificate[]> {
    const request = { params: { app_name: app }, ...options };
    return (await this.call("get", "/v1/apps/{app_name}/certificates", request)).certificates;
  }

  /** Returns one certificate. */
  getCertificate(app: string, hostname: string, options?: CallOptions): Promise<Certificate> {
    return this.call("get", CERTIFICATE, { params: { app_name: app, hostname }, ...options });
  }

  /** Orders a certificate. Returns at once; `getCertificate` says how far it is. A failed order is repeated. */
  addCertificate(app: string, certificate: AddCertificateRequest, options?: CallOptions): Promise<Certificate> {
    const request = { params: { app_name: app }, body: certificate, ...options };
    return this.call("post", "/v1/apps/{app_name}/certificates", request);
  }

  /** Looks what a certificate for a hostname needs. */
  async checkCertificate(app: string, hostname: string, options?: CallOptions): Promise<CertificateFinding[]> {
    const request = { params: { app_name: app, hostname }, ...options };
    return (await this.call("get", `${CERTIFICATE}/check`, request)).findings;
  }

  /** Removes a certificate with its key. With `revoke`, its authority declares it invalid first. */
  async removeCertificate(app: string, hostname: string, { revoke, ...options }: RevokeOptions = {}): Promise<void> {
    await this.call("delete", CERTIFICATE, { params: { app_name: app, hostname }, query: { revoke }, ...options });
  }

  /** Returns an app's secrets, without their values. */
  async listSecrets(app: string, options?: CallOptions): Promise<Secret[]> {
    return (await this.call("get", "/v1/apps/{app_name}/secrets", { params: { app_name: app }, ...options })).secrets;
  }

  /** Sets all of these secrets or none. Snapshots of the app's machines are discarded. */
  setSecrets(
    app: string,
    secrets: Record<string, string>,
    { dry_run, ...options }: DryRunOptions = {},
  ): Promise<SecretsEffect> {
    const request = { params: { app_name: app }, query: { dry_run }, body: { secrets }, ...options };
    return this.call("post", "/v1/apps/{app_name}/secrets", request);
  }

  /** Removes a secret. Snapshots of the app's machines are discarded. */
  unsetSecret(app: string, name: string, { dry_run, ...options }: DryRunOptions = {}): Promise<SecretsEffect> {
    const request = { params: { app_name: app, secret_name: name }, query: { dry_run }, ...options };
    return this.call("delete", "/v1/apps/{app_name}/secrets/{secret_name}", request);
  }
}

const CERTIFICATE = "/v1/apps/{app_name}/certificates/{hostname}";
