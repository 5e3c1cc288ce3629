/** Regions and certificates. */
import { Type } from "typebox";
import { path } from "../ask.ts";
import { Refusal } from "../failure.ts";
import type { Call, Routes } from "./table.ts";

const CERTIFICATES = "/apps/:app_name/certificates";

interface PlatformCertificate {
  hostname: string;
  status: string;
  challenge: string;
  issuer: string | null;
  not_before: string | null;
  not_after: string | null;
}

export function regionRoute(route: Routes): void {
  route("GET", "/platform/regions", {}, async ({ ask }) => {
    const { regions, nearest } = (await ask("GET", "/v1/platform/regions")) as {
      regions: { code: string; name: string }[];
      nearest: string;
    };
    const all = regions.map(({ code, name }) => ({ code, name, gateway_available: true, requires_paid_plan: false }));
    return { regions: all, nearest };
  });
}

export function certificateRoutes(route: Routes): void {
  const list = async ({ ask, of }: Call) =>
    ((await ask("GET", path`/v1/apps/${of("app_name")}/certificates`)) as { certificates: PlatformCertificate[] })
      .certificates;
  const show = async (call: Call) => {
    const found = (await list(call)).find(({ hostname }) => hostname === call.of("hostname"));
    if (found === undefined) throw new Refusal(404, `certificate not found: ${call.of("hostname").slice(0, 100)}`);
    return detailOf(found);
  };

  route("GET", CERTIFICATES, {}, async (call) => {
    const certificates = (await list(call)).map(summaryOf);
    return { certificates, total_count: certificates.length };
  });
  route("GET", `${CERTIFICATES}/:hostname`, {}, show);
  route(
    "POST",
    `${CERTIFICATES}/acme`,
    { body: Type.Object({ hostname: Type.String() }), status: 201 },
    async ({ ask, of, body }) => {
      const { hostname } = body;
      return detailOf(
        (await ask("POST", path`/v1/apps/${of("app_name")}/certificates`, { hostname })) as PlatformCertificate,
      );
    },
  );
  for (const end of ["", "/acme"])
    route("DELETE", `${CERTIFICATES}/:hostname${end}`, { status: 204 }, async ({ ask, of }) => {
      await ask("DELETE", path`/v1/apps/${of("app_name")}/certificates/${of("hostname")}`);
    });
  route("POST", `${CERTIFICATES}/:hostname/check`, {}, show);
}

function summaryOf({ hostname, status, challenge, not_before }: PlatformCertificate) {
  const isReady = status === "valid" || status === "active";
  return {
    hostname,
    status: isReady ? "active" : "pending_validation",
    configured: isReady,
    acme_requested: true,
    has_fly_certificate: isReady,
    has_custom_certificate: false,
    acme_dns_configured: challenge === "dns-01",
    acme_http_configured: challenge === "http-01",
    acme_alpn_configured: challenge === "tls-alpn-01",
    ...(not_before !== null && { created_at: not_before, updated_at: not_before }),
  };
}

function detailOf(certificate: PlatformCertificate) {
  const { issuer, not_before, not_after } = certificate;
  const summary = summaryOf(certificate);
  const one = {
    source: "fly",
    status: summary.status,
    ...(issuer !== null && { issuer }),
    ...(not_before !== null && { created_at: not_before }),
    ...(not_after !== null && { expires_at: not_after }),
  };
  return { ...summary, certificates: not_after === null ? [] : [one] };
}
