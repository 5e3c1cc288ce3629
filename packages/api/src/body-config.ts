/** The configuration of a machine in the body of a request, wherever the route has it. */
import type { MachineConfig } from "@hibernaut/domain/config";

/** As it was sent: nothing of it is checked. Undefined in a body without one. */
export function configIn(body: unknown): Partial<MachineConfig> | undefined {
  const { config, from } = (body ?? {}) as { config?: unknown; from?: unknown };
  return [config, from].find((each): each is Partial<MachineConfig> => typeof each === "object" && each !== null);
}
