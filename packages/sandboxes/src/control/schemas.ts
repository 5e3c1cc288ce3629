/** The shapes of requests to the control API, as far as anything here depends on them. Fields that are not known are ignored. */
import { MAX_EGRESS_ENTRIES } from "@hibernaut/domain/egress";
import { Type } from "typebox";
import { MOST_LISTED } from "../life/limits.ts";
import { VolumeMounts } from "./volume-schemas.ts";

const Texts = Type.Record(Type.String(), Type.String());
const Timeout = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });
const List = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: MAX_EGRESS_ENTRIES });

const Network = Type.Object({
  allowOut: Type.Optional(List),
  denyOut: Type.Optional(List),
  allowPublicTraffic: Type.Optional(Type.Boolean()),
  maskRequestHost: Type.Optional(Type.String({ maxLength: 300, pattern: "^[\\x21-\\x7e]*$" })),
  rules: Type.Optional(Type.Unknown()),
  egressProxy: Type.Optional(Type.Unknown()),
});

export const NewSandbox = Type.Object({
  templateID: Type.String({ minLength: 1, maxLength: 200 }),
  timeout: Type.Optional(Timeout),
  autoPause: Type.Optional(Type.Boolean()),
  autoPauseMemory: Type.Optional(Type.Boolean()),
  autoResume: Type.Optional(Type.Object({ enabled: Type.Boolean() })),
  secure: Type.Optional(Type.Boolean()),
  allow_internet_access: Type.Optional(Type.Boolean()),
  network: Type.Optional(Network),
  metadata: Type.Optional(Texts),
  envVars: Type.Optional(Texts),
  mcp: Type.Optional(Type.Unknown()),
  iam: Type.Optional(Type.Unknown()),
  volumeMounts: Type.Optional(VolumeMounts),
});

/** All of it is replaced: what is left out is allowed. */
export const NetworkBody = Type.Object({
  allowOut: Type.Optional(List),
  denyOut: Type.Optional(List),
  allow_internet_access: Type.Optional(Type.Boolean()),
  rules: Type.Optional(Type.Unknown()),
  egressProxy: Type.Optional(Type.Unknown()),
});

export const SandboxParams = Type.Object({ sandboxID: Type.String({ minLength: 1, maxLength: 80 }) });
export const TemplateParams = Type.Object({ templateID: Type.String({ minLength: 1, maxLength: 200 }) });

export const ConnectBody = Type.Object({ timeout: Type.Optional(Timeout), memory: Type.Optional(Type.Boolean()) });
export const ResumeBody = Type.Object({
  timeout: Type.Optional(Timeout),
  autoPause: Type.Optional(Type.Boolean()),
  memory: Type.Optional(Type.Boolean()),
});
export const TimeoutBody = Type.Object({ timeout: Timeout });
export const RefreshBody = Type.Object({ duration: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600 })) });
export const PauseBody = Type.Object({ memory: Type.Optional(Type.Boolean()) });
export const SnapshotBody = Type.Object({ name: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })) });
export const ForkBody = Type.Object({
  timeout: Type.Optional(Timeout),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
});

export const ListQuery = Type.Object({
  metadata: Type.Optional(Type.String({ maxLength: 8192 })),
  state: Type.Optional(Type.String({ maxLength: 100 })),
  order: Type.Optional(Type.Union([Type.Literal("asc"), Type.Literal("desc")])),
  startedAfter: Type.Optional(Type.String({ maxLength: 64 })),
  template: Type.Optional(Type.String({ maxLength: 200 })),
  nextToken: Type.Optional(Type.String({ maxLength: 300 })),
  limit: Type.Integer({ minimum: 1, maximum: MOST_LISTED, default: MOST_LISTED }),
});

/** `limit` is of builds. */
export const TemplateQuery = Type.Object({
  nextToken: Type.Optional(Type.String({ maxLength: 300 })),
  limit: Type.Integer({ minimum: 1, maximum: MOST_LISTED, default: MOST_LISTED }),
});
export const VisibilityBody = Type.Object({ public: Type.Optional(Type.Boolean()) });

export const SnapshotsQuery = Type.Object({
  sandboxID: Type.Optional(Type.String({ maxLength: 80 })),
  name: Type.Optional(Type.String({ maxLength: 200 })),
  nextToken: Type.Optional(Type.String({ maxLength: 300 })),
  limit: Type.Integer({ minimum: 1, maximum: MOST_LISTED, default: MOST_LISTED }),
});
