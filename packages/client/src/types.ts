/**
 * The types of requests and replies, as the platform's OpenAPI document has them: names are those of the wire. Times are
 * texts in the form of RFC 3339. A field that has a default may be left out of a request.
 */
import type { components } from "./openapi.d.ts";

type Schemas = components["schemas"];

/** A name that owns machines and hostnames. */
export type App = Schemas["App"];

/** Changes of an app. */
export type UpdateAppRequest = Schemas["UpdateAppRequest"];

/** A virtual machine that runs one app. */
export type Machine = Schemas["Machine"];

/** What makes a machine a sandbox. */
export type Sandbox = Schemas["Sandbox"];

/** What a new sandbox is: by default, one that lives for five minutes. */
export type SandboxRequest = Schemas["CreateSandboxRequest"];

/** What a machine is doing. */
export type MachineState = Schemas["MachineState"];

/** What `waitForMachine` waits for. `settled` is any state in which a machine rests; `healthy` and `unhealthy`
 * are running machines of which the platform can tell that they work, or that they do not; `prewarmed` is a machine
 * whose prewarm is over, or that has none. */
export type WaitState = Schemas["WaitState"];

/** What a machine runs, and how. */
export type MachineConfig = Schemas["MachineConfig"];
/** Where a machine may connect to. */
export type EgressConfig = Schemas["EgressConfig"];

/** What the app does for its backups, and what a drill counts. */
export type BackupConfig = Schemas["BackupConfig"];

/** A port of the app, and what the proxy does with it. */
export type ServiceConfig = Schemas["ServiceConfig"];

/** A health check. Times are seconds, or texts such as `15s`. */
export type CheckConfig = Schemas["CheckConfig"];

/** A volume of a machine. Either `volume` or `source` names it. */
export type MountConfig = Schemas["MountConfig"];

/** A file that is written into a machine before its app starts. */
export type FileConfig = Schemas["FileConfig"];

/** What one check of a machine last found. */
export type CheckResult = Schemas["CheckResult"];

/** How an app ended by itself, and what follows. */
export type Crash = Schemas["Crash"];

/** A process in a machine. */
export type GuestProcess = Schemas["Process"];

/** A client changes a machine, and no other one does. */
export type Lease = Schemas["Lease"];

/** A lease with its nonce, which nobody else is told. */
export type OwnLease = Schemas["OwnLease"];

/** What a new machine is made from. Only `config.image` is required. */
export type CreateMachineRequest = Schemas["CreateMachineRequest"];

/** What a fork or a template makes: by default, one machine that starts. */
export type ForkRequest = Schemas["ForkRequest"];

/** The memory and the disk of a machine at one moment, from which machines are made. */
export type Template = Schemas["Template"];

/** From which template a machine is restored. */
export type RestoreRequest = Schemas["RestoreRequest"];

/** What a new template is made of. */
export type CreateTemplateRequest = Schemas["CreateTemplateRequest"];

/** What a machine is used for at the moment, and why it does not sleep. */
export type Activity = Schemas["Activity"];

/** One entry of a machine's history. */
export type MachineEvent = Schemas["MachineEvent"];

/** Where a line of a log comes from: the app, the image's hooks, or the platform. */
export type LogStream = Schemas["LogStream"];

/** One line of a machine's log. */
export type LogEntry = Schemas["LogEntry"];

/** Something that changed on the platform. */
export type StreamEvent = Schemas["StreamEvent"];

/** A URL that is told of events. */
export type Webhook = Schemas["Webhook"];

/** A webhook with its secret, which no other reply contains. */
export type NewWebhook = Schemas["NewWebhook"];

/** What a new webhook is made from. Only `url` is required. */
export type CreateWebhookRequest = Schemas["CreateWebhookRequest"];

/** What to change about a webhook. */
export type UpdateWebhookRequest = Schemas["UpdateWebhookRequest"];

/** How one attempt to send a test message ended. */
export type WebhookTest = Schemas["WebhookTest"];

/** An event on its way to a webhook, or that arrived lately. */
export type WebhookDelivery = Schemas["WebhookDelivery"];

/** A place where backups of the platform are kept. */
export type BackupTarget = Schemas["BackupTarget"];

/** What a new target is made of. */
export type AddBackupTargetRequest = Schemas["AddBackupTargetRequest"];

/** A new target, with the key of its repository if that was made, too. */
export type NewBackupTarget = Schemas["NewBackupTarget"];

/** When backups are made, and which are kept. */
export type UpdateBackupTargetRequest = Schemas["UpdateBackupTargetRequest"];

/** A backup at a target. */
export type BackupSet = Schemas["BackupSet"];

/** Which app to restore from a backup, and as what. */
export type RestoreAppRequest = Schemas["RestoreAppRequest"];

/** How a restore of an app from a backup ended. */
export type AppRestore = Schemas["AppRestore"];

/** Which app to try. */
export type DrillRequest = Schemas["DrillRequest"];

/** How the latest drill of an app ended. */
export type BackupDrill = Schemas["BackupDrill"];

/** How far the latest backup of the platform came. */
export type Backup = Schemas["Backup"];

/** A drain of the platform, or that there is none. */
export type Drain = Schemas["Drain"];

/** How far a drain has come with a machine. */
export type DrainedMachine = Schemas["DrainedMachine"];

/** What a drain is to do. */
export type DrainRequest = Schemas["DrainRequest"];

/** A command that runs to its end before the reply is sent. */
export type ExecRequest = Schemas["ExecRequest"];

/** How a command ended, with the first MiB of each output. */
export type ExecResult = Schemas["ExecResult"];
/** What is at a path in a machine. */
export type MachinePath = Schemas["MachinePath"];
/** What is below a directory of a machine. */
export type FileList = Schemas["FileList"];
/** What is at a path in a machine, in a list. */
export type FileEntry = Schemas["FileEntry"];
/** What was copied into a machine. */
export type UnpackedArchive = Schemas["UnpackedArchive"];

/** A disk that outlives machines. */
export type Volume = Schemas["Volume"];

/** What a new volume is made with. Only `name` is required. */
export type CreateVolumeRequest = Schemas["CreateVolumeRequest"];

/** What changes about a volume. */
export type UpdateVolumeRequest = Schemas["UpdateVolumeRequest"];

/** A volume that was extended. */
export type ExtendedVolume = Schemas["ExtendedVolume"];

/** A volume as it was at one moment. */
export type VolumeSnapshot = Schemas["VolumeSnapshot"];

/** A deploy of an image to an app, and how it ended. */
export type Release = Schemas["Release"];

/** What a new release deploys. */
export type CreateReleaseRequest = Schemas["CreateReleaseRequest"];

/** How a release ended. */
export type UpdateReleaseRequest = Schemas["UpdateReleaseRequest"];

/** How the command of a release ended. */
export type ReleaseCommandEnd = Schemas["ReleaseCommandEnd"];

/** A certificate that the platform gets and renews by itself. */
export type Certificate = Schemas["Certificate"];

/** Which name to get a certificate for. */
export type AddCertificateRequest = Schemas["AddCertificateRequest"];

/** Something that a certificate needs, and whether it is there. */
export type CertificateFinding = Schemas["CertificateFinding"];

/** A secret of an app, without its value. */
export type Secret = Schemas["Secret"];

/** What a change of secrets means to the app's machines. */
export type SecretsEffect = Schemas["SecretsEffect"];

/** How far a pull is. */
export type PullProgress = Schemas["PullProgress"];

/** How far an upload is: which layers the platform already had, what was sent, and then the steps of a pull. */
export type UploadProgress =
  | { step: "exists"; layer: string; total_bytes: number }
  | (Omit<Extract<PullProgress, { step: "download" }>, "step"> & { step: "upload" })
  | PullProgress;

/** How far the move of a machine is. */
export type MoveProgress = Schemas["MoveProgress"];

/** How far the move of one machine off a host is. */
export type HostDrainProgress = Schemas["HostDrainProgress"];

/** A host whose machines have moved. */
export type DrainedHost = Omit<Schemas["DrainedHost"], "done">;

/** What became of the machines of a lost host. */
export type Evacuation = Schemas["Evacuation"];

/** An image that is being uploaded. */
export type ImageUpload = Schemas["ImageUpload"];

/** The configuration of an image that is being uploaded, or one of its layers. */
export type UploadBlob = Schemas["UploadBlob"];

/** An upload that has not ended. */
export type OpenUpload = Schemas["OpenUpload"];

/** An image that is ready. */
export type PulledImage = Omit<Schemas["PulledImage"], "done">;

/** An image on the host's disk. */
export type Image = Schemas["Image"];

/** Which images were deleted, and how many bytes that freed. */
export type PrunedImages = Schemas["PrunedImages"];

/** A login for a registry, without its password. */
export type RegistryLogin = Schemas["RegistryLogin"];

/** An API token, without its secret. */
export type Token = Schemas["Token"];

/** A line of the audit log. */
export type AuditEntry = Schemas["AuditEntry"];

/** What an app may have, and what it has. */
export type Quota = Schemas["Quota"];

/** Changes of an app's limits: 0 means without limit, and null the platform's. */
export type UpdateQuotaRequest = Schemas["UpdateQuotaRequest"];

/** What machines did over time. */
export type Timeline = Schemas["Timeline"];

/** What a machine did over time. */
export type MachineTimeline = Schemas["MachineTimeline"];

/** How machines woke, hour by hour. */
export type Wakes = Schemas["Wakes"];

/** What the platform runs on, and what of it is taken. */
export type Host = Schemas["Host"];

/** The outcome of one check of the host. */
export type Finding = Schemas["Finding"];

/** Whose rights a browser, or a request, has. */
export type Session = Schemas["Session"];

/** What a token may do. `exec` and `deploy` include `read`; `admin` includes all. */
export type Scope = Schemas["Scope"];

/** A token that was just created. Its secret is in `token`, and nowhere else ever after. */
export type NewToken = Schemas["NewToken"];

/** A place where machines run. */
export type Region = Schemas["Region"];

/** What was used, by one app, machine or day, or in all. */
export type Usage = Schemas["Usage"];

/** Usage of whole days, with the sum of all rows. */
export type UsageReport = Schemas["UsageReport"];

/** What something cost. */
export type Cost = Schemas["Cost"];

/** What the platform is, and that it works. */
export type Health = Schemas["Health"];

/** The cluster that a host belongs to, as that host sees it. */
export type Cluster = Schemas["Cluster"];

/** A host of a cluster. */
export type ClusterHost = Schemas["ClusterHost"];

/** A token with which one host can join a cluster. */
export type JoinToken = Schemas["JoinToken"];
