/** `/v1/apps/{app_name}/certificates`: certificates that the platform gets and renews by itself. */
import type { CertificateView } from "@hibernaut/certs";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
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

/** Registers the routes of certificates. */
export function certificateRoutes(app: Api, { certificates }: Pick<ApiDeps, "certificates">): void {
  const path = "/v1/apps/:app_name/certificates";
  const common = { tags: ["apps"], querystring: NoQuery };

  app.get(
    path,
    {
      config: { scope: "read" },
      schema: {
        ...common,
        summary: "List an app's certificates",
        params: AppParams,
        response: replies(200, CertificateList),
      },
    },
    async ({ params }) => ({ certificates: certificates.list(params.app_name).map(toWire) }),
  );

  app.post(
    path,
    {
      config: { scope: "deploy", audited: ["hostname"] },
      schema: {
        ...common,
        summary: "Order a certificate, which is renewed from then on. Repeats a failed order at once",
        params: AppParams,
        body: CertificateBody,
        response: replies(201, CertificateReply),
      },
    },
    async ({ params, body }, reply) => {
      const options = { agreeToTerms: body.agree_to_terms ?? false, signal: clientGone(reply) };
      return reply.code(201).send(toWire(await certificates.add(params.app_name, body.hostname, options)));
    },
  );

  app.get(
    `${path}/:hostname`,
    {
      config: { scope: "read" },
      schema: {
        ...common,
        summary: "Show a certificate",
        params: CertificateParams,
        response: replies(200, CertificateReply),
      },
    },
    async ({ params }) => toWire(certificates.get(params.app_name, params.hostname)),
  );

  app.get(
    `${path}/:hostname/check`,
    {
      config: { scope: "read" },
      schema: {
        ...common,
        summary: "Look in DNS and at port 80 what a certificate for the hostname needs",
        params: CertificateParams,
        response: replies(200, CertificateCheck),
      },
    },
    async ({ params }, reply) => {
      const findings = await certificates.check(params.app_name, params.hostname, clientGone(reply));
      return { findings: findings.map(({ records, ...finding }) => ({ ...finding, records: [...records] })) };
    },
  );

  app.delete(
    `${path}/:hostname`,
    {
      config: { scope: "deploy" },
      schema: {
        ...common,
        summary: "Remove a certificate with its key",
        params: CertificateParams,
        querystring: RevokeQuery,
        response: replies(200, Ok),
      },
    },
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
