/** The path of a machine. */
export const MACHINE = "/v1/apps/{app_name}/machines/{machine_id}";

/** Returns the names in the path of a machine. */
export function machineParams(app: string, id: string) {
  return { app_name: app, machine_id: id };
}
