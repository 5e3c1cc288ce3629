/** `/v1/apps/{app_name}/certificates`: certificates that the platform gets and renews by itself. */
import type { CertificateView } from "@hibernaut/certs";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import {
  CertificateBody,
  CertificateCheck,
  CertificateList,
  CertificateParams,
  CertificateReply,
  type CertificateWire,
  RevokeQuery,
} from "./certificates.schemas.ts";

const route = routesOf("apps");

/** Registers the routes of certificates. */
export function certificateRoutes(app: Api, { certificates }: Pick<ApiDeps, "certificates">): void {
  const path = "/v1/apps/:app_name/certificates";

  app.get(
    path,
    route("List an app's certificates", { scope: "read" }, { params: AppParams, reply: CertificateList }),
    async ({ params }) => ({ certificates: certificates.list(params.app_name).map(toWire) }),
  );

  app.post(
    path,
    route(
      "Order a certificate, which is renewed from then on. Repeats a failed order at once",
      { scope: "deploy", audited: ["hostname"] },
      { params: AppParams, body: CertificateBody, created: CertificateReply },
    ),
    async ({ params, body }, reply) => {
      const options = { agreeToTerms: body.agree_to_terms ?? false, signal: clientGone(reply) };
      return reply.code(201).send(toWire(await certificates.add(params.app_name, body.hostname, options)));
    },
  );

  app.get(
    `${path}/:hostname`,
    route("Show a certificate", { scope: "read" }, { params: CertificateParams, reply: CertificateReply }),
    async ({ params }) => toWire(certificates.get(params.app_name, params.hostname)),
  );

  app.get(
    `${path}/:hostname/check`,
    route(
      "Look in DNS and at port 80 what a certificate for the hostname needs",
      { scope: "read" },
      { params: CertificateParams, reply: CertificateCheck },
    ),
    async ({ params }, reply) => {
      const findings = await certificates.check(params.app_name, params.hostname, clientGone(reply));
      return { findings: findings.map(({ records, ...finding }) => ({ ...finding, records: [...records] })) };
    },
  );

  app.delete(
    `${path}/:hostname`,
    route(
      "Remove a certificate with its key",
      { scope: "deploy" },
      { params: CertificateParams, querystring: RevokeQuery, reply: Ok },
    ),
    async ({ params, query }, reply) => {
      const revoke = query.revoke === true ? { signal: clientGone(reply) } : undefined;
      await certificates.remove(params.app_name, params.hostname, revoke);
      return { ok: true as const };
    },
  );
}

function toWire({ hostname, status, challenge, issuer, failure, ...times }: CertificateView): CertificateWire {
  return {
    ...{ hostname, status, challenge, issuer },
    not_before: times.notBefore,
    not_after: times.notAfter,
    renew_at: times.renewAt,
    failure: failure && { reason: failure.reason, attempts: failure.attempts, at: failure.at, next_at: failure.next },
  };
}
