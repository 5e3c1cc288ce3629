/** A service of a machine: its ports, and its health checks. Part of the machine's configuration. */
import { type Static, Type } from "typebox";
import { schemasOf } from "./field-schemas.ts";
import { SERVICE_FIELDS } from "./fields.ts";
import { NAME_PATTERN } from "./naming.ts";
import { MAX_RESPONSE_HEADERS, MAX_RESPONSE_VALUES } from "./response-headers.ts";
import { PROXY_PROTOCOL_VERSIONS, TCP_HANDLERS } from "./tcp-handlers.ts";

const closed = { additionalProperties: false } as const;

/** How many apps one service may name in `replay_from`: every proxy keeps the list for every machine. */
const MAX_REPLAY_FROM = 100;

/** A port of the proxy for TCP connections. */
export const TcpPortConfig = Type.Object(
  {
    port: Type.Integer({ minimum: 1, maximum: 65_535 }),
    handlers: Type.Optional(
      Type.Array(Type.Enum([...TCP_HANDLERS]), {
        maxItems: TCP_HANDLERS.length,
        uniqueItems: true,
        description:
          "What the proxy does with a connection. `tls`: ends TLS with the certificate of the hostname. `pg_tls`: the same for PostgreSQL's clients. `tls_passthrough`: leaves TLS to the app. `proxy_proto`: begins with a header of the PROXY protocol, which names the client. With a handler for TLS, the hostname that the client names decides about the app, and apps may share the port. Default: none.",
      }),
    ),
    proxy_proto_options: Type.Optional(
      Type.Object(
        {
          version: Type.Optional(Type.Enum([...PROXY_PROTOCOL_VERSIONS], { description: "Default: v1." })),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** A port of the machine that the proxy or the network forwards to, and when the machine sleeps and wakes. */
export const ServiceConfig = Type.Object(
  {
    protocol: Type.Optional(Type.Union([Type.Literal("tcp"), Type.Literal("http")], { description: "Default: tcp." })),
    internal_port: Type.Integer({ minimum: 1, maximum: 65_535, description: "The port that the app listens on." }),
    ports: Type.Optional(
      Type.Array(TcpPortConfig, {
        maxItems: 8,
        description:
          "For `tcp`: ports of the proxy whose connections lead here. Each belongs to one app of the platform, unless all apps that have it handle TLS there. Default: none.",
      }),
    ),
    ...schemasOf(SERVICE_FIELDS, ""),
    replay_from: Type.Optional(
      Type.Array(Type.String({ pattern: NAME_PATTERN }), {
        maxItems: MAX_REPLAY_FROM,
        description: "Other apps that may send their requests on to this one. Default: none.",
      }),
    ),
    http_options: Type.Optional(
      Type.Object(
        {
          ...schemasOf(SERVICE_FIELDS, "http_options"),
          response: Type.Optional(
            Type.Object(
              {
                headers: Type.Optional(
                  Type.Record(
                    Type.String(),
                    Type.Union([
                      Type.String(),
                      Type.Array(Type.String(), { maxItems: MAX_RESPONSE_VALUES }),
                      Type.Literal(false),
                    ]),
                    {
                      maxProperties: MAX_RESPONSE_HEADERS,
                      description: "Headers that replace those of the app in its responses; false removes one.",
                    },
                  ),
                ),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    concurrency: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(Type.Union([Type.Literal("requests"), Type.Literal("connections")])),
          ...schemasOf(SERVICE_FIELDS, "concurrency"),
        },
        closed,
      ),
    ),
  },
  { ...closed, title: "ServiceConfig" },
);

const duration = (text: string) =>
  Type.Union(
    [Type.Integer({ minimum: 1, maximum: 3600 }), Type.String({ pattern: "^\\d{1,6}(?:ms|s|m|h)$", maxLength: 9 })],
    { description: `${text} A number of seconds, or a text such as "15s".` },
  );

const HeaderName = Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", maxLength: 128 });
const HeaderValue = Type.String({ pattern: "^[\\t\\x20-\\x7e]*$", maxLength: 1024 });

/** A health check. */
export const CheckConfig = Type.Object(
  {
    type: Type.Union([Type.Literal("tcp"), Type.Literal("http")]),
    port: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 65_535, description: "Default: `internal_port` of the first service." }),
    ),
    interval: Type.Optional(duration("Time between two checks, from 100ms to 1h. Default: 15s.")),
    timeout: Type.Optional(duration("Time limit of one check, from 100ms to 1h. Default: 5s.")),
    grace_period: Type.Optional(duration("Time after a start in which failures don't count, up to 1h. Default: 10s.")),
    method: Type.Optional(Type.String({ pattern: "^[A-Za-z]{1,16}$", description: "For `http`. Default: GET." })),
    path: Type.Optional(Type.String({ pattern: "^/", maxLength: 2048, description: "For `http`. Default: /." })),
    headers: Type.Optional(
      Type.Array(
        Type.Object({ name: HeaderName, values: Type.Array(HeaderValue, { minItems: 1, maxItems: 8 }) }, closed),
        { maxItems: 32 },
      ),
    ),
  },
  { ...closed, title: "CheckConfig" },
);

export type TcpPortConfig = Static<typeof TcpPortConfig>;
export type ServiceConfig = Static<typeof ServiceConfig>;
export type CheckConfig = Static<typeof CheckConfig>;
