/** Shapes of `/v1/health` and `/v1/platform`. */
import { Type } from "typebox";
import { closed, nullable } from "../schemas.ts";

const Region = Type.Object(
  { code: Type.String(), name: Type.String() },
  { ...closed, title: "Region", description: "A place where machines run." },
);

/** The platform's regions, in Fly's shape. */
export const Regions = Type.Object({ regions: Type.Array(Region), nearest: Type.String() }, closed);

/** A platform that works. */
export const Health = Type.Object(
  {
    status: Type.Literal("ok"),
    version: Type.String({ description: "Version of Hibernaut." }),
    region: Type.String(),
    hypervisor: Type.String(),
    hypervisor_version: Type.String(),
    accelerator: Type.String({ description: "`kvm`, or `tcg` for software emulation." }),
    accelerator_reason: Type.String({ description: "Why the platform uses this accelerator." }),
    proxy_url: nullable(Type.String(), "Where the proxy listens. Null when proxies run as processes of their own."),
    guest_bundle: Type.String({ description: "Version of the guest bundle that new machines boot from." }),
    network: Type.Object(
      {
        mode: Type.String({ description: "`bridge`, or `user` for QEMU's user-mode network." }),
        reason: Type.String({ description: "Why the platform uses this mode." }),
      },
      { ...closed, description: "How machines are connected." },
    ),
  },
  { ...closed, title: "Health", description: "What the platform is. Only a platform that works answers with it." },
);
