/** Shapes of `/v1/apps/{app_name}/certificates`. Private keys are in none of them. */
import { CERTIFICATE_STATUSES } from "@hibernaut/certs";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const hostname = Type.String({ description: "A hostname, or `*.` and a hostname." });

export const CertificateBody = Type.Object(
  {
    hostname: Type.String({ minLength: 1, maxLength: 254 }),
    agree_to_terms: Type.Optional(
      Type.Boolean({ description: "Agree to the authority's terms of service. Needed once. Default: false." }),
    ),
  },
  { ...closed, title: "AddCertificateRequest", description: "Which name to get a certificate for." },
);

const Failure = Type.Object(
  {
    reason: Type.String(),
    attempts: Type.Integer({ description: "How many orders have failed in a row." }),
    at: time,
    next_at: Type.String({ format: "date-time", description: "When the next order is due." }),
  },
  { ...closed, description: "The last order, if it failed." },
);

export const CertificateReply = Type.Object(
  {
    hostname,
    status: oneOf(CERTIFICATE_STATUSES),
    challenge: oneOf(["http-01", "tls-alpn-01", "dns-01"]),
    issuer: nullable(Type.String()),
    not_before: nullable(time),
    not_after: nullable(time),
    renew_at: nullable(time, "When its renewal is due."),
    failure: nullable(Failure),
  },
  { ...closed, title: "Certificate", description: "A certificate that the platform gets and renews by itself." },
);

export type CertificateWire = Static<typeof CertificateReply>;

export const CertificateList = Type.Object({ certificates: Type.Array(CertificateReply) }, closed);

const FindingReply = Type.Object(
  {
    what: oneOf(["authority", "dns", "caa", "port_80", "port_443", "dns_hook", "tls"]),
    status: oneOf(["ok", "missing", "unknown"]),
    found: Type.String(),
    records: Type.Array(Type.String(), { description: "DNS records to add, as lines of a zone file." }),
  },
  {
    ...closed,
    title: "CertificateFinding",
    description: "Something that a certificate needs, and whether it is there.",
  },
);

export const CertificateCheck = Type.Object({ findings: Type.Array(FindingReply) }, closed);

/** `?revoke=true` */
export const RevokeQuery = Type.Object(
  {
    revoke: Type.Optional(
      Type.Boolean({ description: "Have the authority declare it invalid before its end, too. Default: false." }),
    ),
  },
  closed,
);

export const CertificateParams = Type.Object({ ...AppParams.properties, hostname: Type.String() }, closed);
