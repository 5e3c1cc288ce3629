/** `/v1/platform/host` and `/v1/platform/doctor`: what the platform runs on, and what is wrong with it. */
import { release } from "node:os";
import type { Api, ApiDeps } from "../deps.ts";
import { HostFindings } from "../findings.ts";
import { NoQuery, replies } from "../schemas.ts";
import { FindingsReply, HostReply, type HostWire } from "./host.schemas.ts";

const LEVELS = { ok: "ok", warn: "warning", fail: "error" } as const;

/** Registers the routes. */
export function hostRoutes(app: Api, { host, platform, doctor }: Pick<ApiDeps, "host" | "platform" | "doctor">): void {
  const tags = ["platform"];
  const findings = new HostFindings({ examine: doctor });

  app.get(
    "/v1/platform/host",
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Show what the platform runs on, and what of it is taken",
        querystring: NoQuery,
        response: replies(200, HostReply),
      },
    },
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
    {
      config: { scope: "admin" },
      schema: {
        tags,
        summary: "Check the host, as `hibernaut doctor` does there",
        querystring: NoQuery,
        response: replies(200, FindingsReply),
      },
    },
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
