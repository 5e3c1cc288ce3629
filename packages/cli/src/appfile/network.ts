/** Where machines may connect to: `[network.egress]`, which Fly's app files do not have. */
import type { MachineConfig } from "@hibernaut/client";
import { egressRefusal } from "@hibernaut/domain/egress";
import { given } from "@hibernaut/lib/given";
import type { Section } from "./section.ts";

/** `[network.egress]`. A value that the platform would refuse is reported where it is written. */
export function readNetwork(top: Section): Pick<MachineConfig, "network"> {
  const network = top.section("network");
  const section = network?.section("egress");
  network?.finish();
  if (section === undefined) return {};
  const [allow, deny] = [section.strings("allow"), section.strings("deny")];
  const byDefault = section.choice("default", ["allow", "deny"]);
  const egress = {
    ...given({ default: byDefault, allow, deny }),
  };
  const refusal = egressRefusal(egress);
  if (refusal !== undefined) section.error(refusal.field.split("[", 1)[0] ?? "", refusal.message);
  section.finish();
  return { network: { egress } };
}
