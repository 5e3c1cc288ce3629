/** `/v1/platform/host` and `/v1/platform/doctor`: what the platform runs on, and what is wrong with it. */
import { release } from "node:os";
import { type Static, Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { HostFindings } from "../findings.ts";
import { routesOf } from "../route.ts";
import { bytes, closed, nullable, oneOf } from "../schemas.ts";

const route = routesOf("platform");

const seconds = (description: string) => Type.Integer({ minimum: 0, description });

const HostReply = Type.Object(
  {
    memory: Type.Object(
      {
        total_bytes: bytes,
        available_bytes: nullable(
          Type.Integer(),
          "What programs can still get, where the platform is confined to less than the host: of that. Null if the kernel does not say.",
        ),
      },
      closed,
    ),
    disk: Type.Object(
      { total_bytes: bytes, free_bytes: bytes },
      { ...closed, description: "The file system of the data directory." },
    ),
    warm: Type.Object(
      { budget_bytes: bytes, used_bytes: bytes, machines: Type.Integer({ minimum: 0 }) },
      { ...closed, description: "The virtual machines that are kept in memory, paused: what they may take, and take." },
    ),
    cpus: Type.Object(
      {
        count: Type.Integer({ minimum: 1 }),
        load: Type.Array(Type.Number(), { description: "The load average over 1, 5 and 15 minutes." }),
      },
      closed,
    ),
    accelerator: Type.Object(
      { name: Type.String({ description: "`kvm`, or `tcg` for software emulation." }), reason: Type.String() },
      closed,
    ),
    versions: Type.Object(
      {
        platform: Type.String(),
        qemu: Type.String(),
        node: Type.String(),
        kernel: Type.String({ description: "The host's." }),
        guest_bundle: Type.String({ description: "What new machines boot from." }),
      },
      closed,
    ),
    uptime_seconds: seconds("Since the platform started."),
    host_uptime_seconds: seconds("Since the host started."),
  },
  { ...closed, title: "Host", description: "What the platform runs on, and what of it is taken." },
);

const FindingsReply = Type.Object(
  {
    findings: Type.Array(
      Type.Object(
        {
          level: oneOf(["ok", "warning", "error"]),
          name: Type.String({ description: "What was checked." }),
          message: Type.String({ description: "What was found." }),
          advice: nullable(Type.String(), "A command that repairs it. Null if there is none, or nothing to repair."),
        },
        { ...closed, title: "Finding", description: "The outcome of one check of the host." },
      ),
    ),
  },
  closed,
);

type HostWire = Static<typeof HostReply>;

const LEVELS = { ok: "ok", warn: "warning", fail: "error" } as const;

/** Registers the routes. */
export function hostRoutes(app: Api, { host, platform, doctor }: Pick<ApiDeps, "host" | "platform" | "doctor">): void {
  const findings = new HostFindings({ examine: doctor });

  app.get(
    "/v1/platform/host",
    route("Show what the platform runs on, and what of it is taken", { scope: "admin" }, { reply: HostReply }),
    async (): Promise<HostWire> => {
      const { memory, disk, warm, cpus, uptimeS } = await host.use();
      return {
        memory: { total_bytes: memory.total, available_bytes: memory.available },
        disk: { total_bytes: disk.total, free_bytes: disk.free },
        warm: { budget_bytes: warm.budget, used_bytes: warm.used, machines: warm.machines },
        cpus,
        accelerator: { name: platform.hypervisor.accelerator, reason: platform.acceleratorReason },
        versions: {
          platform: platform.version,
          qemu: platform.hypervisor.version,
          node: process.versions.node,
          kernel: release(),
          guest_bundle: platform.guestBundle,
        },
        uptime_seconds: Math.floor(process.uptime()),
        host_uptime_seconds: uptimeS,
      };
    },
  );

  app.get(
    "/v1/platform/doctor",
    route("Check the host, as `hibernaut doctor` does there", { scope: "admin" }, { reply: FindingsReply }),
    async () => {
      const found = await findings.read();
      return {
        findings: found.map(({ name, status, found: message, fix = null }) => ({
          level: LEVELS[status],
          name,
          message,
          advice: fix,
        })),
      };
    },
  );
}
