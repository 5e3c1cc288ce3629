/** Restored machines get the requests; those that had them keep what they have, out of the way. */
import type { Resources, RestoredApp } from "@hibernaut/machines";

interface Change {
  /** The machines that were there before, by id. */
  before: readonly string[];
  restored: RestoredApp;
}

/** Returns the ids of the machines whose place was taken. One that was destroyed meanwhile is not among them. */
export function takeOver(app: string, { before, restored }: Change, machines: Resources["machines"]): string[] {
  const there = new Set(machines.list(app).map(({ record }) => record.id));
  const replaced = before.filter((id) => there.has(id));
  // In this order, there is always someone who gets requests.
  for (const { id, cordoned } of restored.machines) if (!cordoned) machines.cordon(app, id, { on: false });
  for (const id of replaced) machines.cordon(app, id, { on: true });
  for (const id of replaced)
    if (machines.get(app, id).record.state === "running")
      machines.sleep(app, id, { how: "suspend", otherwise: "stop" }, { by: "backup restore" });
  return replaced;
}
