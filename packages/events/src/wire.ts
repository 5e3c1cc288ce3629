/** Events of the stream as clients see them. Pure. */
import type { StreamEvent } from "@hibernaut/domain/stream-event";

/** An event as JSON, with where it happened in a cluster. */
export function textOf(
  { sequence, at, type, app, machine, data }: StreamEvent,
  where: { host?: string; position?: string } = {},
): string {
  return JSON.stringify({ sequence, at, type, app_name: app, machine_id: machine, data, ...where });
}

/** A server-sent event. JSON has no line breaks, so one line of data is enough. */
export function serverSent({ id, type, data }: { id: number | string; type: string; data: string }): string {
  return `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`;
}
